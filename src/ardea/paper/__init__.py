"""Every table and figure of Rudy & Sapsis, "Sparse Methods for Automatic Relevance Determination", from seeds.

:mod:`~ardea.paper.catalogue` declares the experiments as data: sizes, trial, table, figure. Their trials are in
:mod:`~ardea.paper.closed_forms` (strengths given) and :mod:`~ardea.paper.regressions` (strengths searched for).
:mod:`~ardea.paper.experiment` says what an experiment is, runs and records trials and makes the outputs from the
records alone. :mod:`~ardea.paper.page` is the command, and sets printed, replayed and corrected numbers side by side.
:mod:`~ardea.paper.replay` is the authors' published code in its behaviour, defects included;
:mod:`~ardea.paper.theory_claims` and :mod:`~ardea.paper.example_claims` hold every sentence of the paper against the
records.
"""
