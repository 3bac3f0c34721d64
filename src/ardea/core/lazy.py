"""Properties that are computed when they are first asked for."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, overload

T = TypeVar("T")


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
