"""
A series with gaps
==================

The Lorenz system again, but a tenth of the rows is lost, a fifth of the values of z, and there is one longer gap. Set
missing values to NaN, or leave the rows out. A missing value is simply not compared with its state; the equations
are followed through the gap.
"""

import matplotlib.pyplot as plt
import numpy as np

from ardea.dynamics import Discovery, systems

rng = np.random.default_rng(1)
t, x = systems.lorenz63().noisy(0.01, seed=1)
x[rng.random(len(t)) < 0.1] = np.nan
x[rng.random(len(t)) < 0.2, 2] = np.nan
x[100:106] = np.nan
model = Discovery().fit(x, t, feature_names=["x", "y", "z"])
model.print()
print(model.rows_used_, "of", len(t), "rows have a sample")

# %%
# The truth is :math:`x' = -10x + 10y`, :math:`y' = 28x - y - xz`, :math:`z' = -2.667z + xy`. ``states_`` has the states
# at all rows, also where nothing was measured; the band is wider in the gap.

states, part = model.states_[0], slice(80, 126)
figure, axes = plt.subplots(3, 1, figsize=(7, 5), layout="constrained", sharex=True)
for ax, name, samples in zip(axes, "xyz", x.T, strict=True):
    at, mean, half = states["time"][part], states[name][part], 1.96 * states[f"{name} std"][part]
    ax.axvspan(t[100], t[105], color="0.92", label="nothing measured")
    ax.fill_between(at, mean - half, mean + half, color="#c5dff0", label="95 % band")
    ax.plot(at, mean, color="#0072b2", label="state")
    ax.plot(t[part], samples[part], "o", color="#d55e00", markersize=3, label="samples")
    ax.set_ylabel(name)
axes[0].legend(fontsize="small", ncols=4, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
axes[0].set_title("Through the gap", loc="left")
axes[-1].set_xlabel("t")
plt.show()
