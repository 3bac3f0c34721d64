"""All experiments, in the order of the paper."""

from __future__ import annotations

from ardea.paper.experiment import Experiment, ExperimentError
from ardea.paper.fourier import FOURIER
from ardea.paper.fpfn_curve import FPFN_CURVE
from ardea.paper.kappa import KAPPA
from ardea.paper.ks import KS
from ardea.paper.linear import LINEAR
from ardea.paper.lorenz63 import LORENZ63
from ardea.paper.lorenz96 import LORENZ96
from ardea.paper.merits import MERITS
from ardea.paper.orthogonal import ORTHOGONAL
from ardea.paper.rho import RHO

EXPERIMENTS: tuple[Experiment, ...] = (
    *ORTHOGONAL,
    FPFN_CURVE,
    RHO,
    KAPPA,
    MERITS,
    LINEAR,
    FOURIER,
    LORENZ63,
    LORENZ96,
    KS,
)


def experiment_named(name: str) -> Experiment:
    """Return an experiment by its name on the command line.

    Examples
    --------
    >>> experiment_named("linear").label
    'tab:linear_example, fig:linear_stats'
    """
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    known = ", ".join(experiment.name for experiment in EXPERIMENTS)
    raise ExperimentError(f"There is no experiment {name!r}. There are: {known}; also all, list and report.")
