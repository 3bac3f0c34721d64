"""
A field in two dimensions
=========================

A substance drifts and spreads on a surface: :math:`c_t = -c_x + 0.5 c_y + 0.1 (c_{xx} + c_{yy})`. We see it on 40 × 40
points at 40 times, with 5 % noise, and look for its equation among 18 candidates.
"""

import matplotlib.pyplot as plt
import numpy as np

from ardea.dynamics import Discovery, FieldTerms

n, rng = 40, np.random.default_rng(3)
x = y = np.arange(n) * 2 * np.pi / n
t = np.linspace(0, 2, 40)
kx, ky = np.meshgrid(np.fft.fftfreq(n, 1 / n), np.fft.fftfreq(n, 1 / n), indexing="ij")
first = np.fft.fft2(rng.normal(size=(n, n))) * np.exp(-(kx**2 + ky**2) / 12)
speed = -1j * kx + 0.5j * ky - 0.1 * (kx**2 + ky**2)
c = np.stack([np.fft.ifft2(first * np.exp(speed * time)).real for time in t], axis=-1)
c += 0.05 * c.std() * rng.normal(size=c.shape)

model = Discovery(FieldTerms(powers=2, derivatives=2)).fit(c, t, space=(x, y), feature_names=["c"])
model.print()

# %%
# Drift and diffusion come out as they are, and the two directions of diffusion agree within their intervals although
# nothing said that they should.

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained", sharey=True)
reach = np.abs(c).max()
for ax, k in zip(axes, (0, 20, 39), strict=True):
    image = ax.pcolormesh(x, y, c[:, :, k].T, cmap="PuOr", vmin=-reach, vmax=reach, rasterized=True)
    ax.set(xlabel="x")
    ax.set_title(f"t = {t[k]:.1f}", loc="left", fontsize="medium")
axes[0].set_ylabel("y")
figure.colorbar(image, ax=axes, label="c")
plt.show()
