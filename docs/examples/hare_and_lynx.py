"""
Hare and lynx, 1900–1920
========================

Pelts (in thousands) bought by the Hudson's Bay Company, year by year: the best-known data on predator and prey, 21
rows. Do they contain the equations of Lotka and Volterra?

The numbers are those tabulated in P. Howard, *Modeling Basics* (lecture notes, Texas A&M University, 2009), from the
records of the company, which C. G. Hewitt first drew (*The Conservation of the Wild Life of Canada*, 1921).
"""

import warnings

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
# The candidates are the constant, both animals, their squares and their product.

with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    model = Discovery(Polynomials(2)).fit(pelts, years, feature_names=["hare", "lynx"])
model.print()

# %%
# These are the equations of Lotka and Volterra: hares multiply and are eaten, lynx starve and eat. One other model of
# the hares is worse by less than 6, so the data do not rule it out. There is also a warning:

print(raised[0].message)

# %%
# This is no surprise: weather, disease and the fur trade move the numbers, too. The smoothed states follow the
# equations up to such pushes.

states = model.states_[0]
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, colour, dash, marker in [("hare", "#0072b2", "-", "o"), ("lynx", "#d55e00", "--", "s")]:
    half = 1.96 * states[f"{name} std"]
    ax.fill_between(years, states[name] - half, states[name] + half, color=colour, alpha=0.2, linewidth=0)
    ax.plot(years, states[name], dash, color=colour, label=f"{name}, smoothed by the equations")
    ax.plot(years, pelts[:, ["hare", "lynx"].index(name)], marker, color=colour, markersize=4, label=f"{name}, counted")
ax.set(xlabel="year", ylabel="thousand pelts", xticks=years[::4])
ax.set_title("Two equations follow twenty years of counts", loc="left", pad=38)
ax.legend(fontsize="small", ncols=2, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
plt.show()
