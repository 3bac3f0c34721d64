"""What stands in for functools: computed properties, looks at data; and compiled twins, which may not be there."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, overload

T = TypeVar("T")
P = ParamSpec("P")


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


def explained(page: str) -> Callable[[Callable[P, Iterable[str]]], Callable[P, list[str]]]:
    """Make a look that yields what it has to say one that returns it all, each text with the page that explains it.

    Texts come without a full stop at their end: it stands behind the page.

    Examples
    --------
    >>> @explained("misfit")
    ... def signs(numbers):
    ...     yield from (f"{one} is below zero" for one in numbers if one < 0)
    >>> signs([3, -2])
    ['-2 is below zero (python -m ardea.explain misfit).']
    """

    def with_page(look: Callable[P, Iterable[str]]) -> Callable[P, list[str]]:
        @functools.wraps(look)
        def told(*args: P.args, **kwargs: P.kwargs) -> list[str]:
            texts = look(*args, **kwargs)
            return [f"{text} (python -m ardea.explain {page}){'' if text.endswith('?') else '.'}" for text in texts]

        return told

    return with_page
