"""Ardea: linear models with very few terms and honest error bars.

The data flow: rows are compressed (:mod:`ardea.core.compression`), one outer loop finds prior variances that maximise
the evidence (:mod:`ardea.core.reweighted`), a threshold or a prior on them decides which terms stay
(:mod:`ardea.methods.thresholds`, :mod:`ardea.priors`), and an estimator turns the result into scikit-learn attributes
(:mod:`ardea.estimators.family`). How strict a threshold is follows from the number of false terms one accepts
(:mod:`ardea.rates`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ardea import dynamics, priors, rates
    from ardea.core.implicit import Operator
    from ardea.estimators import ARD, LSTSBL, MAPSTSBL, MSTSBL, ARDr, ARDSearch, ARDvi, SparseARD, advice
    from ardea.estimators.advice import CollapseWarning
    from ardea.saving import ModelFileError, load, save

    __version__: str

__all__ = ["ARD", "LSTSBL", "MAPSTSBL", "MSTSBL", "ARDSearch", "ARDr", "ARDvi", "Operator", "SparseARD"]
__all__ += ["CollapseWarning", "ModelFileError", "__version__", "advice", "dynamics", "priors", "rates"]
__all__ += ["load", "save", "show_versions"]
# Where each name comes from: they are imported when they are first asked for, so that the command line starts at once.
_HOMES = {
    "ardea": ("dynamics", "priors", "rates"),
    "ardea.estimators": ("ARD", "LSTSBL", "MAPSTSBL", "MSTSBL", "ARDr", "ARDSearch", "ARDvi", "SparseARD", "advice"),
    "ardea.estimators.advice": ("CollapseWarning",),
    "ardea.core.implicit": ("Operator",),
    "ardea.saving": ("ModelFileError", "load", "save"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("ardea")
        for home, names in _HOMES.items():
            if name in names:
                found = import_module(f"{home}.{name}") if home == "ardea" else getattr(import_module(home), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def show_versions() -> None:
    """Print the versions of Ardea, Python and the packages it can use, and which outer loop is in use.

    Examples
    --------
    >>> import ardea
    >>> ardea.show_versions()  # doctest: +ELLIPSIS
    python        ...
    ardea         ...
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from ardea.core.loop import loop_in_use

    print(f"{'python':<14}{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in ("ardea", "numpy", "scipy", "scikit-learn", "pandas", "polars"):
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "not installed"
        print(f"{name:<14}{installed}")
    print(f"{'outer loop':<14}{loop_in_use()}")
