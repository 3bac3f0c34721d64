"""
Only positions are measured
===========================

A weight on a spring that becomes stiffer the further it is pulled. A camera records its position, not its speed. With
``derivative_order=2`` the equation is sought for the acceleration, and the speed is found on the way.
"""

import matplotlib.pyplot as plt

from ardea.dynamics import Discovery, systems

system = systems.duffing()
t, x = system.noisy(0.05, seed=0)
speed = system.simulate()[1][:, 1]
model = Discovery(derivative_order=2).fit(x[:, 0], t, feature_names=["x"])
model.print()

# %%
# The truth is :math:`x'' = x - 0.1 x' - x^3`. The speed was never measured, and no derivative of the noisy positions
# was taken. Compared with the true speed, which we know here:

states = model.states_[0]
half = 1.96 * states["x' std"]
inside = (abs(states["x'"] - speed) < half).mean()
print(f"the true speed lies in the 95 % band at {inside:.0%} of the times")

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4), layout="constrained", sharex=True)
top.plot(t, x[:, 0], "o", color="#d55e00", markersize=2, label="measured positions")
top.plot(t, states["x"], color="#0072b2", label="position, smoothed")
bottom.fill_between(t, states["x'"] - half, states["x'"] + half, color="#c5dff0", label="95 % band")
bottom.plot(t, states["x'"], color="#0072b2", label="speed, found")
bottom.plot(t, speed, ":", color="0.1", label="true speed")
top.set(ylabel="x", xlim=(0, 10))
bottom.set(xlabel="t", ylabel="x′")
for ax in (top, bottom):
    ax.legend(fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
plt.show()
