"""
Which experiment next? Rivals of a model
========================================

Eighty noisy samples of a van der Pol oscillator. The equations found are right, but the data do not rule out some
others. Which experiment would?
"""

import matplotlib.pyplot as plt
import numpy as np

from ardea.dynamics import Discovery, systems

t, x = systems.van_der_pol().noisy(0.2, seed=0)
model = Discovery().fit(x[::5], t[::5], feature_names=["x", "y"])
model.print()

# %%
# The truth is :math:`x' = y`, :math:`y' = -x + 1.5 y - 1.5 x^2 y`. Every equation has its rivals, the next best models,
# with the amount by which their criterion is worse. A difference of 6 corresponds to odds of about 20 to 1.

figure, axes = plt.subplots(2, 1, figsize=(7, 4.6), layout="constrained", sharex=True, height_ratios=[2, 3])
for ax, equation in zip(axes, model.equations_, strict=True):
    rivals = equation.rivals[:6]
    excess = [rival.excess for rival in rivals]
    colours = ["#d55e00" if one < 6 else "0.6" for one in excess]
    ax.barh(range(len(rivals)), excess, color=colours, height=0.6)
    ax.axvline(6, color="0.2", linestyle=":")
    ax.set_yticks(range(len(rivals)), [", ".join(rival.terms) or "no terms" for rival in rivals], fontsize="small")
    ax.invert_yaxis()
    ax.set_title(f"Rivals of {equation.name}′ = {', '.join(equation.terms)}", loc="left", fontsize="medium")
axes[1].set(xlabel="how much worse (6 would be clear; longer bars are cut)", xlim=(0, 15))
plt.show()

# %%
# ``distinguish`` looks for starts from which the model and its rivals run furthest apart, in units of the noise.

proposed = model.distinguish(n=2, bounds={"x": (-4, 4), "y": (-6, 6)}, random_state=0)
for start, differences in zip(proposed.starts, proposed.differences, strict=True):
    print(f"start at {start.round(1)}: the rivals differ by {np.sort(differences.round(1))[::-1]} times the noise")

# %%
# Suppose that we do the second of them, with the same noise, and sample five times as often:

t2, x2 = systems.van_der_pol().noisy(0.2, seed=1, x0=proposed.starts[1])
Discovery().fit([x[::5], x2], [t[::5], t2], feature_names=["x", "y"]).print()
