"""
Rows that do not fit in memory, with Dask
=========================================

Every estimator takes Dask arrays and data frames. Each block of rows is compressed where it is made to a triangle of
d × d numbers. The triangles are merged, and the fit runs on the last one. The model is that of all rows at once.
Here the blocks are made on the fly by a random generator, as they would be read from files.
"""

import time

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from ardea import SparseARD

D, SIZES = 40, [10_000, 100_000, 1_000_000]
truth = np.zeros(D)
truth[[3, 11, 27]] = [0.5, -0.02, 0.01]


def rows(n):
    """Return n rows of X and y as Dask arrays, in blocks of 50,000 rows at most."""
    generator = da.random.default_rng(0)
    X = generator.normal(size=(n, D), chunks=(50_000, D))
    return X, X @ truth + generator.normal(size=n, chunks=50_000)


models, seconds = [], []
for n in SIZES:
    X, y = rows(n)
    start = time.perf_counter()
    models.append(SparseARD().fit(X, y))
    seconds.append(time.perf_counter() - start)
    kept = np.flatnonzero(models[-1].support_).tolist()
    print(f"{n:>9,} rows, {X.nbytes / 1e6:>4.0f} MB: {seconds[-1]:5.2f} s, kept {kept}")

# %%
# More rows show smaller terms: 0.01 is a hundredth of the noise. (x17, at 100,000 rows, is a false term. On average
# 0.3 of them are to be expected in a fit.)

print(models[-1].summary(kind="refit"))

# %%
# A model of a Dask collection is an ordinary model. Predictions for a Dask array are lazy too:

mean, std = models[-1].predict(X, return_std=True)
print(mean)
print("residual σ:", float((y - mean).std().compute().round(4)))

# %%
# Intervals of the three true terms against the number of rows; the dotted lines are the truth.

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
for ax, j in zip(axes, np.flatnonzero(truth), strict=True):
    for place, model in enumerate(models):
        low, high = model.credible_interval(kind="refit")[j]
        if model.support_[j]:
            ax.errorbar(place, (low + high) / 2, yerr=(high - low) / 2, fmt="o", color="#0072b2", capsize=4)
        else:
            ax.plot(place, 0, "x", color="#d55e00")
    ax.axhline(truth[j], color="0.4", linestyle=":")
    ax.set(title=f"x{j} (× not kept)", xticks=range(3), xlim=(-0.5, 2.5), xlabel="rows")
    ax.set_xticklabels([f"{n:,}" for n in SIZES])
plt.show()
