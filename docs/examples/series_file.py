"""
Equations from a file with dates
================================

A logger has written the temperatures of a cup of coffee and of the room, with a date in every row, decimal commas and a
few empty cells. Here we make such a file first; with your own file, begin at the second step.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter

from ardea.dynamics import Discovery, Polynomials

rng = np.random.default_rng(1)
minutes = np.arange(0, 90, 1.0)
coffee = 21 + 64 * np.exp(-minutes / 30) + 0.3 * rng.normal(size=90)
when = pd.Timestamp("2026-03-02 08:15") + pd.to_timedelta(minutes, unit="min")
table = pd.DataFrame({"when": when, "coffee": coffee.round(1)})
table.loc[rng.choice(90, 8, replace=False), "coffee"] = np.nan
path = Path(mkdtemp()) / "coffee.csv"
table.to_csv(path, sep=";", decimal=",", index=False)
print(path.read_text()[:110])

# %%
# Read it with pandas. Empty cells stay empty: in a series a gap is information.

table = pd.read_csv(path, sep=";", decimal=",", parse_dates=["when"])
print(table["coffee"].isna().sum(), "of", len(table), "values are missing")

# %%
# Temperatures lie far from zero compared with how much they vary, so powers of them look alike. A reference value, here
# that of the room, makes the terms distinct.

model = Discovery(Polynomials(2)).fit(table[["coffee"]] - 21, table["when"])
model.print()

# %%
# Newton's law of cooling: the excess over the room decays at a rate of 1/30 per minute. The same from the command line:
# ``ardea discover coffee.csv --time when --degree 2``, which detects separators and decimal commas itself.

states = model.states_[0]
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(table["when"], table["coffee"], "o", color="#d55e00", markersize=3, label="logged")
ax.plot(states["time"], states["coffee"] + 21, color="#0072b2", label="smoothed by the equation")
ax.axhline(21, color="0.5", linestyle=":", label="room")
ax.set(ylabel="degrees")
ax.set_title("The coffee cools towards the room", loc="left")
ax.legend(fontsize="small", frameon=False)
ax.xaxis.set_major_formatter(DateFormatter("%H:%M"))
plt.show()
