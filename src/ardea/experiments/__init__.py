"""Every table and figure of Rudy & Sapsis, "Sparse Methods for Automatic Relevance Determination", from seeds.

One file per experiment, each declared as data × methods × strengths × metric (:mod:`~ardea.experiments.experiment`,
:mod:`~ardea.experiments.study`). Trials are run and recorded first (:mod:`~ardea.experiments.runner`,
:mod:`~ardea.experiments.records`), tables and figures are made from the records afterwards
(:mod:`~ardea.experiments.outputs`). :mod:`~ardea.experiments.replay` is the authors' published code in its behaviour,
defects included; :mod:`~ardea.experiments.page` sets printed, replayed and corrected numbers side by side.
"""
