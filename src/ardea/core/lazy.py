"""What is there only when it is asked for: computed properties, and compiled twins of loops."""

from __future__ import annotations

import functools
import os
from importlib import import_module
from typing import Any, TypeVar, overload

T = TypeVar("T")


def compiled_module(name: str) -> Any:
    """Return a compiled module of this package; None where it was installed without a compiler."""
    try:
        return import_module(f"ardea.{name}")
    except ImportError:
        return None


def numpy_is_asked_for() -> bool:
    """Return whether the environment says that NumPy twins are to run, whatever is compiled (``ARDEA_LOOP=numpy``)."""
    return os.environ.get("ARDEA_LOOP") == "numpy"


class cached_property(functools.cached_property[T]):
    """As in functools, without its lock.

    Before Python 3.12 that holds one lock for all instances of a class, so that threads that fit models of their own
    wait for each other. Here two threads that ask one instance at the same time may both compute the value, which is
    the same.

    Examples
    --------
    >>> class Circle:
    ...     radius = 2.0
    ...
    ...     @cached_property
    ...     def area(self):
    ...         return 3.14 * self.radius**2
    >>> Circle().area
    12.56
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> cached_property[T] | T:
        """Return the value; the instance has it from then on."""
        if instance is None:
            return self
        value: T = self.func(instance)
        instance.__dict__[self.attrname] = value  # type: ignore[index]
        return value
