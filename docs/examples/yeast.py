"""
The growth of yeast
===================

In 1913 Tor Carlson measured every hour how much yeast there was in his culture (Biochemische Zeitschrift 57, 313–334;
R. Pearl made the numbers famous). Nineteen rows are enough to find the equation, and to say how well it is known.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from ardea.dynamics import Discovery

yeast = [9.6, 18.3, 29.0, 47.2, 71.1, 119.1, 174.6, 257.3, 350.7, 441.0, 513.3, 559.7, 594.8, 629.4, 640.8]
yeast = np.array([*yeast, 651.1, 655.9, 659.6, 661.8])
hours = np.arange(19.0)

model = Discovery().fit(yeast, hours, feature_names=["yeast"])
model.print()

# %%
# This is the logistic equation. Its two coefficients are strongly correlated, so the level at which growth stops, their
# ratio, is known much better than either of them. Draws from the posterior show it:

draws = model.sample(1000, random_state=0)[:, 0, model.coef_[0] != 0]
level = -draws[:, 0] / draws[:, 1]
print(f"growth per hour: {draws[:, 0].mean():.3f} ± {1.96 * draws[:, 0].std():.3f}")
print(f"final level: {level.mean():.0f} ± {1.96 * level.std():.0f}")

# %%
# What would we have known after nine hours, before the growth slowed down? Much less: the end is uncertain, and a
# warning says that the data hardly tell yeast² from yeast³. The band knows nothing of this second
# doubt, and indeed the yeast stopped growing earlier than it says.

with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    early = Discovery().fit(yeast[:10], hours[:10], feature_names=["yeast"])
early.print()
print(raised[0].message)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
for ax, one, rows, title in [
    (axes[0], early, 10, "From ten hours: the end is uncertain"),
    (axes[1], model, 19, "From all hours: the band is hardly visible"),
]:
    later = np.linspace(0, 18, 73)
    bands = one.simulate(t=later, n_samples=200, random_state=0)
    ax.fill_between(later, bands.lower[:, 0], bands.upper[:, 0], color="#c5dff0", label="95 % band")
    ax.plot(later, bands.median[:, 0], color="#0072b2", label="equation")
    ax.plot(hours[:rows], yeast[:rows], "o", color="#d55e00", markersize=4, label="used")
    ax.plot(hours[rows:], yeast[rows:], "s", color="0.5", markersize=4, label="not used")
    ax.set(xlabel="hours", ylim=(0, 900))
    ax.set_title(title, loc="left", fontsize="medium")
axes[0].set_ylabel("yeast")
axes[0].legend(fontsize="small", frameon=False)
plt.show()
