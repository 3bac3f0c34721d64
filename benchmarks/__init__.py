"""Benchmarks: the same data, the same measure and one thread for Ardea and its peers.

``python -m benchmarks.run`` makes the table, ``python -m benchmarks.growth`` the growth curves and
``python -m benchmarks.inner_solvers`` the study of inner solvers, all from the root of the repository.
"""
