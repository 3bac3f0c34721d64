"""
Which measurements matter: the diabetes data
============================================

Ten measurements of 442 patients at the start of a year, and how far their disease had progressed at its end. We offer
the ten measurements, their squares and all products of two, and ask for the few that explain something. (The square of
sex is left out: a column with two values is its own square.)

The data come with scikit-learn (Efron, Hastie, Johnstone & Tibshirani, *Least Angle Regression*, Annals of Statistics
32, 2004).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

from ardea import ARDSearch, SparseARD
from ardea.show import plot_coefficients, plot_path

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
quadratic = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
columns = quadratic.fit_transform(X - X.mean()).drop(columns="sex^2")
print(columns.shape)

# %%
# ``SparseARD`` needs one number, how many false terms we accept on average (0.3 by default). Units do not matter: blood
# pressure, age and their products go in as they are. A notebook shows a model by its terms;
# ``print(model.summary())`` has them as text.

model = SparseARD()
model.fit(columns, y)

# %%
# The intervals hold *given* these terms. What happens if we accept more or fewer false terms? ``ARDSearch`` fits a
# whole path, and the criterion *evidence* chooses on it.

search = ARDSearch(SparseARD()).fit(columns, y)
chosen = search.best_estimator_
print(f"chosen: false_terms = {search.best_strength_:.3g}")
print(list(chosen.get_feature_names_out()))

# %%
# Few terms on the left, many on the right; the criterion is smallest where the dotted line is.

plot_path(search)
plt.show()

# %%
# The terms chosen. Their coefficients differ a hundredfold in size, so that each is drawn in units of its standard
# error.

plot_coefficients(chosen)
plt.show()

# %%
# From 0.07 to 0.6 accepted false terms the model is the same: nothing depends on the exact strength.

frame = search.path_.to_frame()[["strength", "k", "evidence", "noise_variance"]]
print(frame.round(3).to_string(index=False))
