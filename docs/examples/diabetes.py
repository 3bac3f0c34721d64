"""
Which measurements matter: the diabetes data
============================================

442 patients, ten measurements at the start of a year, and how far the disease had gone at its end. We offer the ten
measurements, their squares and all products of two, and ask for the few that explain something. (Not the square of
sex: where a column has two values, its square is the same column again.)

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
# `SparseARD` needs one number, how many false terms we accept on average (.3 by default). Units do not matter: blood
# pressure, age and products of them go in as they are. A notebook shows a model by its terms;
# ``print(model.summary())`` has them as text.

model = SparseARD()
model.fit(columns, y)

# %%
# The intervals are those of a least-squares refit on the terms kept: the ones to report. They hold *given* these
# terms. What happens when we accept more or fewer false terms is the path; the criterion *evidence* chooses on it.

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
# From .07 to .6 accepted false terms the model is the same one: nothing here hangs on the exact strength.

frame = search.path_.to_frame()[["strength", "k", "evidence", "noise_variance"]]
print(frame.round(3).to_string(index=False))
