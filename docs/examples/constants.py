"""
An enzyme with an unknown constant
==================================

An enzyme consumes a substrate S at the rate :math:`V S/(K + S)`, the law of Michaelis and Menten. K is inside the term,
so ordinary regression cannot find it. Name the family, ``Saturation()``, and the term, V and K are found together.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from ardea.dynamics import Discovery, Polynomials, Saturation

t = np.linspace(0, 10, 150)
rng = np.random.default_rng(1)
runs = []
for start in (5.0, 1.0):
    S = solve_ivp(lambda _, S: -1.5 * S / (0.7 + S), (0, 10), [start], t_eval=t, rtol=1e-9).y.T
    runs.append(S + 0.05 * rng.normal(size=S.shape))

model = Discovery(Polynomials(3) + Saturation()).fit(runs, [t, t], feature_names=["S"])
model.print()

# %%
# The truth is V = 1.5 and K = 0.7. Polynomials up to degree 3 were candidates too; with them alone the rate of
# consumption is only approximated, and a warning would say so.

constant = model.equations_[0].constants["K"]
print(f"K = {constant.value:.2f}, 95 % interval {constant.interval[0]:.2f} to {constant.interval[1]:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for run, colour, marker in zip(runs, ("#0072b2", "#d55e00"), "os", strict=True):
    left.plot(t, run, marker, color=colour, markersize=2)
    left.plot(t, model.simulate(run[0], t), color=colour)
left.set(xlabel="t", ylabel="S")
left.set_title("Two experiments, one equation", loc="left", fontsize="medium")
S = np.linspace(0, 5, 101)
right.plot(S, 1.5 * S / (0.7 + S), ":", color="0.1", label="truth")
right.plot(S, -model.coef_.min() * S / (constant.value + S), color="#0072b2", label="found")
right.set(xlabel="S", ylabel="rate of consumption")
right.set_title("The law behind them", loc="left", fontsize="medium")
right.legend(fontsize="small", frameon=False)
plt.show()
