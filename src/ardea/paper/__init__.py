"""Every table and figure of Rudy & Sapsis, "Sparse Methods for Automatic Relevance Determination", from seeds.

:mod:`~ardea.paper.catalogue` declares the experiments as data: sizes, trial, table, figure. Their trials are in
:mod:`~ardea.paper.closed_forms` (strengths given) and :mod:`~ardea.paper.regressions` (strengths searched for).
:mod:`~ardea.paper.runner` is the command: it runs and records trials and makes the outputs from the records alone.
:mod:`~ardea.paper.replay` is the authors' published code in its behaviour, defects included;
:mod:`~ardea.paper.claims` holds every sentence of the paper against the records, and :mod:`~ardea.paper.page` sets
printed, replayed and corrected numbers side by side.
"""
