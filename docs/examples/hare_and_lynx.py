"""
Hare and lynx, 1900–1920
========================

Pelts (in thousands) taken by the Hudson's Bay Company, year by year: the best-known data on predator and prey, 21 rows.
Do they contain the equations of Lotka and Volterra?

The figures are those tabulated in P. Howard, *Modeling Basics* (lecture notes, Texas A&M University, 2009), from the
records of the company, which C. G. Hewitt first drew (*The Conservation of the Wild Life of Canada*, 1921).
"""

import matplotlib.pyplot as plt
import numpy as np

from ardea.dynamics import Discovery, Polynomials

years = np.arange(1900.0, 1921.0)
hare = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1]
hare += [40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
lynx = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4]
lynx += [8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
pelts = np.column_stack([hare, lynx])

# %%
# Candidates are the constant, both species, their squares and their product. A window of the weak form spans several
# samples, and a cycle of ten years has ten: too few. On series this short use differences.

names = ["hare", "lynx"]
model = Discovery(Polynomials(2), form="derivative").fit(pelts, years, feature_names=names)
model.print()

# %%
# These are the equations of Lotka and Volterra: hares multiply and are eaten, lynx starve and eat. The data do not
# quite settle the first equation: a constant, or a square that limits the hares, would be worse by 4 or 5 points of the
# criterion, odds of 9 or 12 to 1.
#
# The weak form says on the same data that nothing can be said, which is the error on the safe side:

Discovery(Polynomials(2)).fit(pelts, years, feature_names=names).print()

# %%
# The model run from the first year. The bands hold the uncertainty of the coefficients alone. Years in which the trade
# in furs changed, and an error in the start, are not in them.

later = np.linspace(1900, 1920, 401)
run = model.simulate(pelts[0], later)
bands = model.simulate(pelts[0], later, n_samples=200, random_state=0)

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for j, (name, dash, marker) in enumerate(zip(names, ["-", "--"], ["o", "s"], strict=True)):
    ax.fill_between(later, bands.lower[:, j], bands.upper[:, j], color="0.88" if j else "0.8", linewidth=0)
    ax.plot(later, run[:, j], dash, color="0.1", linewidth=1.2, label=f"{name}, model")
    ax.plot(years, pelts[:, j], marker, color="0.1", markerfacecolor="white", markersize=5, label=f"{name}, pelts")
ax.set(xlabel="year", ylabel="thousands", xticks=years[::4])
ax.legend(fontsize="small", ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
plt.show()
