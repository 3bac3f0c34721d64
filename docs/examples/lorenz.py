"""
The Lorenz equations from 251 noisy points
==========================================

Three states at 251 times, with noise of 3 % of their standard deviation. :class:`ardea.dynamics.Discovery` is told the
candidate terms (by default all products up to degree 3, 20 for each equation) and nothing else: no noise level, no
threshold.
"""

import matplotlib.pyplot as plt

from ardea.dynamics import Discovery, systems
from ardea.show import plot_simulation

t, x = systems.lorenz63().noisy(0.03, seed=0)
model = Discovery().fit(x, t, feature_names=["x", "y", "z"])
model.print()

# %%
# ± is half a 95 % interval. The truth is :math:`x' = -10x + 10y`, :math:`y' = 28x - y - xz`,
# :math:`z' = -2.667z + xy`.
#
# How sure are the terms? Every equation lists its rivals, the next best models, and how much worse they are. A
# difference of 6 corresponds to odds of about 20 to 1.

for equation in model.equations_:
    best = equation.rivals[0]
    print(f"{equation.name}: {', '.join(equation.terms)}; next best (+{best.excess:.0f}): {', '.join(best.terms)}")

# %%
# The equations, run from the first smoothed state, with bands from the posterior of the coefficients and of the start.
# Lorenz is chaotic: after three time units small differences have grown, and the bands open.

shown = t <= t[0] + 4
plot_simulation(model, None, t[shown], x=x[shown], n_samples=50, random_state=0)
plt.show()

# %%
# The same as formulas for a paper:

print(model.latex())
