"""A property that is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):
    """`functools.cached_property` without the lock it has before Python 3.12.

    The lock costs as much as a product of small matrices, of which an evaluation has few.
    Two threads that ask at once may both compute the value; it is the same.
    """

    def __init__(self, function: Callable[[Any], Value]):
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[Value] | Value:
        if instance is None:
            return self
        # Found in the instance's own dictionary, it is not looked for here again.
        value = instance.__dict__[self._name] = self._function(instance)
        return value
