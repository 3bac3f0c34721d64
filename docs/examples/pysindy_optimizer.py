"""
Error bars in PySINDy
=====================

:class:`ardea.pysindy.ARDOptimizer` goes where PySINDy takes an optimizer. Nothing has to be tuned, and the coefficients
come with standard deviations. More, and how this compares with :class:`ardea.dynamics.Discovery`, is on the page
:doc:`/pysindy`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps

from ardea.dynamics import systems
from ardea.pysindy import ARDOptimizer

names = ["x", "y", "z"]
t, x = systems.lorenz63().noisy(0.01, seed=0, t=np.arange(0, 10, 0.01))

optimizer = ARDOptimizer()
model = ps.SINDy(optimizer=optimizer, feature_library=ps.PolynomialLibrary(3))
model.fit(x, t, feature_names=names)
model.print()

# %%
# PySINDy prints no error bars; they are in `coef_std_` (and `coef_covariance_`).

terms = model.get_feature_names()
for name, coef, std in zip(names, optimizer.coef_, optimizer.coef_std_, strict=True):
    print(f"{name}′ =", " + ".join(f"({coef[j]:.2f} ± {1.96 * std[j]:.2f}) {terms[j]}" for j in np.flatnonzero(coef)))

# %%
# Against the truth, which is known here: 95 % intervals of coefficient/true coefficient.

truth = {"x": {"x": -10, "y": 10}, "y": {"x": 28, "y": -1, "x z": -1}, "z": {"z": -8 / 3, "x y": 1}}
figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
labels = [(name, term) for name in names for term in truth[name]]
for place, (name, term) in enumerate(labels):
    row, column, true = names.index(name), terms.index(term), truth[name][term]
    coef, std = optimizer.coef_[row, column], optimizer.coef_std_[row, column]
    ax.errorbar(coef / true, -place, xerr=1.96 * std / abs(true), fmt="o", color="#0072b2", capsize=3, markersize=4)
ax.axvline(1, color="#d55e00", linestyle=":")
ax.set_yticks([-place for place in range(len(labels))], [f"{term} in {name}′" for name, term in labels])
ax.set_xlabel("coefficient / true coefficient")
ax.set_title("The intervals hold the truth", loc="left")
plt.show()

# %%
# For comparison, PySINDy's own optimizer at its default threshold, which keeps two constants:

ps.SINDy(optimizer=ps.STLSQ(), feature_library=ps.PolynomialLibrary(3)).fit(x, t, feature_names=names).print()
