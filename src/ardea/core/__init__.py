"""The numerical core: NumPy and SciPy only, imports nothing above it.

Data flow: rows → :mod:`~ardea.core.compression` (by :mod:`~ardea.core.factor`) → :mod:`~ardea.core.pose` →
:mod:`~ardea.core.problem` → :mod:`~ardea.core.working_set` → :mod:`~ardea.core.reweighted`, the one outer loop, which
asks :mod:`~ardea.core.evidence` for tangent weights, :mod:`~ardea.core.weighted_lasso` for the next coefficients and
:mod:`~ardea.core.noise` for the next σ² (compiled: ``_loop.pyx``, reached through :mod:`~ardea.core.compiled`) →
:mod:`~ardea.core.posterior` → :mod:`~ardea.core.result`.
"""
