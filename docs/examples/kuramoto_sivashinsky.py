r"""
A partial differential equation from a noisy field
==================================================

The Kuramoto–Sivashinsky equation :math:`u_t = -u u_x - u_{xx} - u_{xxxx}` on 512 × 1072 points. The noise is a quarter
of the standard deviation of u: its fourth derivative by differences would be nothing but noise. The weak form takes no
derivative of the data, and finds the right ones of the 25 candidates :math:`u^p \partial^q u`, :math:`p, q \le 4`. To
be quick we use half of space and 400 times. This part is not periodic, and need not be.
"""

import matplotlib.pyplot as plt

from ardea.dynamics import Discovery, systems

system = systems.kuramoto_sivashinsky()
t, u = system.noisy(0.25, seed=0)
(x,) = system.space
x, t, u = x[:256], t[:400], u[:256, :400]
print(u.shape)

# %%

model = Discovery().fit(u, t, space=(x,))
model.print()

# %%
# ``noise`` is the noise of the field as its equation sees it. If it were well above that of the samples, a term would
# be missing in the library.

equation = model.equations_[0]
print(f"noise: {equation.noise:.3f}; true: {0.25 * system.noisy(0.0, seed=0)[1].std():.3f}")
for rival in equation.rivals[:3]:
    print(f"+{rival.excess:.0f}: {', '.join(rival.terms)}")

# %%

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
image = ax.pcolormesh(t, x, u, cmap="cividis", shading="auto", rasterized=True)
figure.colorbar(image, label="u")
ax.set(xlabel="t", ylabel="x", title="The noisy field that the equation was found from")
plt.show()
