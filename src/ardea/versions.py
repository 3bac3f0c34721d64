"""What is installed, for bug reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__version__ = version("ardea")

_PACKAGES = ("ardea", "numpy", "scipy", "scikit-learn", "pandas", "polars")


def show_versions() -> None:
    """Print the versions of Ardea, Python and the packages it can use, and which outer loop is in use.

    Examples
    --------
    >>> import ardea
    >>> ardea.show_versions()  # doctest: +ELLIPSIS
    python        ...
    ardea         ...
    """
    from ardea.core.loop import loop_in_use

    print(f"{'python':<14}{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in _PACKAGES:
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "not installed"
        print(f"{name:<14}{installed}")
    print(f"{'outer loop':<14}{loop_in_use()}")
