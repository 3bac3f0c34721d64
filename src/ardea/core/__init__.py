"""The numerical core: NumPy and SciPy only, imports nothing above it.

Data flow: rows → :mod:`~ardea.core.compression` (or :mod:`~ardea.core.implicit`, for a Θ that is never made dense) →
:mod:`~ardea.core.problem` → :mod:`~ardea.core.loop`, the one outer loop, whose steps are compiled (``_compiled.pyx``)
or in NumPy (:mod:`~ardea.core.reweighted`), to a fit. The steps ask :mod:`~ardea.core.evidence` for
tangent weights and :mod:`~ardea.core.lasso` for the next coefficients.
"""
