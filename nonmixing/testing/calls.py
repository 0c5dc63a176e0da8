"""Calls of a user's function on exact or float64 arrays, with what such a function must not do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from nonmixing.errors import InputError, ShapeError
from nonmixing.testing.entries import Entry, NotExact, exact

Rows = Sequence[Sequence[int | Fraction]]
RouteName = Literal["prime field", "fractions", "float64"]
ArraysName = Literal["numpy", "torch"]

# What a function on arrays of objects may raise because it needs floats.
UNABLE = (
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    AssertionError,
    LookupError,
)

# The library a user's function works with has no types here: `Any` stands for its arrays.


class InputChanged(InputError):
    """A function changes the arrays that it is given."""


class WrongShape(ShapeError):
    """A function returns an array of another shape, or another number of arrays."""


class WrongResult(InputError):
    """A function returns what is no array of real numbers."""


class NotFinite(InputError):
    """A function returns NaN or infinity."""


class NotDeterministic(InputError):
    """A function returns something else when it is called again with the same arrays."""


class Unable(Exception):
    """A function cannot be run on this kind of entries; the message says why."""


@dataclass(frozen=True)
class Argument:
    """A value for a function, and how it is passed: as it is, or a column with one axis."""

    value: Rows | int | Fraction
    form: Literal["size", "number", "matrix", "flat"]


@dataclass(frozen=True)
class Precision:
    """What the numbers of a result are, and the error granted to them.

    The error is relative to the largest entry of the formula's value, or to 1 if that is larger. It
    is the square root of the type's eps: half of the digits must agree.
    """

    name: str
    tolerance: float

    @classmethod
    def of(cls, result: NDArray[Any]) -> Precision:
        """That of an array as `Route.read` returns it: objects are exact numbers."""
        if result.dtype.kind == "O":
            return EXACT
        return cls(result.dtype.name, float(np.sqrt(np.finfo(result.dtype).eps)))

    def __str__(self) -> str:
        """After `in`: float32, to 3.5e-04."""
        return f"{self.name}, to {self.tolerance:.1e}"


EXACT = Precision("exact numbers", 0.0)


@dataclass(frozen=True)
class Route:
    """Which entries and which arrays a function is run on."""

    name: RouteName
    arrays: ArraysName = "numpy"
    prime: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether nothing is rounded."""
        return self.name != "float64"

    def argument(self, given: Argument) -> Any:
        """A fresh copy of the value, for the function."""
        value = given.value
        if given.form == "size":
            return value
        if isinstance(value, int | Fraction):
            return Entry(value, self.prime) if self.is_exact else float(value)
        if self.is_exact:
            rows: list[list[Any]] = [[Entry(x, self.prime) for x in row] for row in value]
            array: NDArray[Any] = np.array(rows, dtype=object)
        else:
            array = np.array([[float(x) for x in row] for row in value], dtype=np.float64)
        array = array[:, 0] if given.form == "flat" else array
        return array if self.arrays == "numpy" else import_module("torch").tensor(array)

    def read(self, result: Any, name: str) -> NDArray[Any]:
        """What a function returned, as an array of exact numbers or of floats.

        Raises:
            WrongResult: it is no array of real numbers.
            NotExact: floats came back where exact numbers went in.
        """
        if hasattr(result, "detach"):
            result = result.detach().cpu().numpy()
        array = np.asarray(result)
        if array.dtype.kind not in "biufO" or result is None:
            kind = type(result).__name__
            raise WrongResult(f"{name}: returned {kind}; an array of real numbers is expected")
        if self.is_exact:
            values = [exact(x) for x in array.ravel().tolist()]
            exact_array = np.empty(len(values), dtype=object)
            exact_array[:] = [Entry(x, self.prime).value for x in values]
            return exact_array.reshape(array.shape)
        if array.dtype.kind == "O":
            raise WrongResult(f"{name}: returned an array of objects; real numbers are expected")
        return array if array.dtype.kind == "f" else array.astype(np.float64)


def routes(arrays: ArraysName | None) -> list[Route]:
    """The routes to try, the most telling first."""
    prime = 2**61 - 1
    ways = [Route("prime field", prime=prime), Route("fractions"), Route("float64")]
    if arrays == "torch" or (arrays is None and "torch" in sys.modules):
        ways.append(Route("float64", "torch"))
    return [way for way in ways if arrays is None or way.arrays == arrays]


def called(
    function: Callable[..., Any],
    name: str,
    route: Route,
    arguments: Sequence[Argument],
    shapes: Sequence[tuple[int, ...]],
    where: str,
) -> list[NDArray[Any]]:
    """What a function returns, read and checked.

    Args:
        function: the user's.
        name: how to call it in messages.
        route: the kind of entries.
        arguments: for the function.
        shapes: of the arrays that must come back; several come as a tuple.
        where: the sizes, for messages.

    Raises:
        Unable: it cannot be run on such entries.
        InputChanged, WrongShape, WrongResult, NotFinite, NotDeterministic: what it must not do.
    """
    __tracebackhide__ = True
    call = partial(_once, function, name, route, arguments, shapes, where)
    first, second = call(), call()
    for one, other in zip(first, second, strict=True):
        if not same(one, other, route):
            raise NotDeterministic(
                f"{name}: two calls with the same arrays differ at {where}; "
                "draw the random numbers outside and pass them in"
            )
    return first


def same(one: NDArray[Any], other: NDArray[Any], route: Route) -> bool:
    """Whether two results are equal; for floats up to the tolerance of their precision."""
    if route.is_exact:
        return bool(np.all(one == other))
    limit = Precision.of(one).tolerance * max(1.0, float(np.abs(other).max(initial=0.0)))
    return bool(np.all(np.abs(one - other) <= limit))


def _once(
    function: Callable[..., Any],
    name: str,
    route: Route,
    arguments: Sequence[Argument],
    shapes: Sequence[tuple[int, ...]],
    where: str,
) -> list[NDArray[Any]]:
    __tracebackhide__ = True
    given, kept = ([route.argument(argument) for argument in arguments] for _ in range(2))
    try:
        result = function(*given)
    except UNABLE as error:
        if route.is_exact:
            raise Unable(f"{type(error).__name__}: {_line(error)}") from error
        error.add_note(f"({name} was called with float64 {route.arrays} arrays at {where})")
        raise
    for number, (now, before) in enumerate(zip(given, kept, strict=True), 1):
        if _differs(now, before):
            raise InputChanged(
                f"{name}: it changes its argument {number} at {where}; work on a copy"
            )
    parts = [result] if len(shapes) == 1 else _several(result, len(shapes), name, where)
    try:
        arrays = [route.read(part, name) for part in parts]
    except NotExact as error:
        raise Unable(str(error)) from None
    for array, shape in zip(arrays, shapes, strict=True):
        _check(array, shape, name, where)
    # What has one entry may come without axes.
    return [array.reshape(shape) for array, shape in zip(arrays, shapes, strict=True)]


def _differs(now: Any, before: Any) -> bool:
    """Whether an argument is not what it was."""
    if not hasattr(now, "shape"):
        return False  # a number, which cannot be changed
    try:
        return tuple(now.shape) != tuple(before.shape) or bool((now != before).any())
    except NotExact:  # a float was written into it
        return True


def _several(result: Any, count: int, name: str, where: str) -> list[Any]:
    if not isinstance(result, tuple | list):
        raise WrongShape(
            f"{name}: returned one {type(result).__name__} at {where}; "
            f"a tuple of {count} arrays is expected"
        )
    parts = cast("Sequence[Any]", result)
    if len(parts) != count:
        raise WrongShape(f"{name}: returned {len(parts)} arrays at {where}; {count} are expected")
    return list(parts)


def _check(array: NDArray[Any], shape: tuple[int, ...], name: str, where: str) -> None:
    single = array.size == 1 and shape in ((), (1, 1))
    if array.shape != shape and not single:
        hint = ""
        if array.shape == shape[::-1]:
            hint = "; is it transposed?"
        elif array.shape == shape[:1] and shape[1:] == (1,):
            hint = "; flat=True passes columns as arrays with one axis"
        raise WrongShape(
            f"{name}: returned an array of shape {array.shape} at {where}; "
            f"{shape} is expected{hint}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NotFinite(f"{name}: entry {place} is {array[place]} at {where}")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]
