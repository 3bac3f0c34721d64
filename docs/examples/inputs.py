"""
A heated room: control inputs
=============================

A room loses heat to the air outside and is warmed by a heater with three levels. The temperature of the room is
measured every quarter of an hour; the outdoor temperature and the level of the heater are known inputs ``u``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from ardea.dynamics import Discovery, Polynomials

t = np.arange(0, 48, 0.25)
outdoor = 8 + 6 * np.sin(2 * np.pi * (t - 9) / 24)
heater = np.round(1 + np.sin(1.1 * t) / 2 + np.sin(0.37 * t + 1) / 2)


def slope(time, room, level):
    """−0.25 (room − outdoor) + 2 level, in degrees per hour."""
    return -0.25 * (room - np.interp(time, t, outdoor)) + 2 * level


room = np.full(len(t), 17.0)
for i in range(len(t) - 1):
    room[i + 1] = solve_ivp(slope, (t[i], t[i + 1]), [room[i]], args=(heater[i],), rtol=1e-8).y[0, -1]
room += 0.1 * np.random.default_rng(0).normal(size=len(t))

inputs = np.column_stack([outdoor, heater])
model = Discovery(Polynomials(2)).fit(room, t, u=inputs, feature_names=["room", "outdoor", "heater"])
model.print()

# %%
# All ten products of room, outdoor and heater up to degree 2 were candidates. The model can now answer questions: what
# if the heater had stayed off on the second day?

off = np.where(t < 24, heater, 0.0)
bands = model.simulate([room[0]], t, u=np.column_stack([outdoor, off]), n_samples=100, random_state=0)

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.4), layout="constrained", sharex=True, height_ratios=[3, 1])
top.plot(t, room, "o", color="0.5", markersize=2, label="measured")
top.plot(t, model.simulate([room[0]], t, u=inputs)[:, 0], color="#0072b2", label="equation")
top.fill_between(t, bands.lower[:, 0], bands.upper[:, 0], color="#f5c9a8", label="95 % band")
top.plot(t, bands.median[:, 0], "--", color="#d55e00", label="equation, heater off on the second day")
top.plot(t, outdoor, ":", color="#009e73", label="outdoor")
top.set_ylabel("degrees")
top.set_title("A question to the model", loc="left", pad=38)
top.legend(fontsize="small", ncols=3, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
bottom.step(t, heater, where="post", color="0.2")
bottom.set(xlabel="hours", ylabel="heater", yticks=[0, 1, 2])
plt.show()
