"""Every table and figure of Rudy & Sapsis, "Sparse Methods for Automatic Relevance Determination", from seeds.

One file per experiment, each declared as data × methods × strengths × metric (:mod:`~ardea.paper.experiment`,
:mod:`~ardea.paper.study`). Trials are run and recorded first (:mod:`~ardea.paper.runner`,
:mod:`~ardea.paper.records`), tables and figures are made from the records afterwards
(:mod:`~ardea.paper.outputs`). :mod:`~ardea.paper.replay` is the authors' published code in its behaviour,
defects included; :mod:`~ardea.paper.page` sets printed, replayed and corrected numbers side by side.
"""
