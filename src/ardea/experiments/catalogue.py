"""All experiments, in the order of the paper."""

from __future__ import annotations

from ardea.experiments.experiment import Experiment, ExperimentError
from ardea.experiments.fourier import FOURIER
from ardea.experiments.fpfn_curve import FPFN_CURVE
from ardea.experiments.kappa import KAPPA
from ardea.experiments.ks import KS
from ardea.experiments.linear import LINEAR
from ardea.experiments.lorenz63 import LORENZ63
from ardea.experiments.lorenz96 import LORENZ96
from ardea.experiments.merits import MERITS
from ardea.experiments.orthogonal import ORTHOGONAL
from ardea.experiments.rho import RHO

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
