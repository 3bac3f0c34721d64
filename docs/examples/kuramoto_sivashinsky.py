"""
A partial differential equation from a noisy field
==================================================

The Kuramoto–Sivashinsky equation u_t = −u u_x − u_xx − u_xxxx on 512 × 1072 points. The noise is a quarter of the
standard deviation of u: its fourth derivative by differences would be nothing but noise. In the weak form no derivative
of the data is taken, and the 25 candidates u^p ∂^q u, p, q ≤ 4, are told apart. To be quick we use half of
space and 400 times; that is not periodic any more, and nothing in the method needs it to be.
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
# `noise` is the noise of the field as its equation sees it. If it were well above that of the samples, the library
# would lack a term.

equation = model.equations_[0]
print(f"noise: {equation.noise:.3f}; true: {0.25 * system.noisy(0.0, seed=0)[1].std():.3f}")
for rival in equation.rivals[:3]:
    print(f"+{rival.excess:.0f}: {', '.join(rival.terms)}")

# %%

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
image = ax.pcolormesh(t, x, u, cmap="gray", shading="auto", rasterized=True)
figure.colorbar(image, label="u")
ax.set(xlabel="t", ylabel="x", title="what the method sees")
plt.show()
