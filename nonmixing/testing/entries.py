"""Numbers that stand for the entries of an array, so that a user's NumPy code runs exactly.

A NumPy array with `dtype=object` calls the operators of its entries. With these entries `A @ B`,
`A * B`, `A.T`, `np.trace`, `np.sum`, `np.einsum`, ... are exact; whatever needs real floats raises.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import TypeAlias

import numpy as np

Number: TypeAlias = int | Fraction
Operation = Callable[[Number, Number], Number]
Comparison = Callable[[Number, Number], bool]

MOST_DIGITS = 9
"""A float with at most so many decimal digits is taken for the decimal that was typed."""


class NotExact(TypeError):
    """What came has no exact meaning here, or an operation has none."""


class Entry:
    """A rational number, or an integer modulo a prime.

    Args:
        value: the number.
        prime: the modulus; None for rationals.
    """

    __slots__ = ("prime", "value")

    def __init__(self, value: Number, prime: int | None = None) -> None:
        self.prime = prime
        self.value: Number = value if prime is None else _residue(value, prime)

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: x + y)

    def __mul__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: x * y)

    def __sub__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: x - y)

    def __rsub__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: y - x)

    def __truediv__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: x * self._inverted(y))

    def __rtruediv__(self, other: object) -> Entry:
        return self._with(other, lambda x, y: y * self._inverted(x))

    def __pow__(self, exponent: object) -> Entry:
        power = exact(exponent)
        if power.denominator != 1:
            raise NotExact(f"the power {power} of an exact number")
        base, times = self.value, abs(int(power))
        if power < 0:
            base = self._inverted(base)
        if self.prime is not None:
            return Entry(pow(int(base), times, self.prime), self.prime)
        return Entry(base**times, self.prime)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Entry:
        return Entry(-self.value, self.prime)

    def __pos__(self) -> Entry:
        return self

    def conjugate(self) -> Entry:
        """Itself: these numbers are real."""
        return self

    def _with(self, other: object, operation: Operation) -> Entry:
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array then takes its entries one by one
        return Entry(operation(self.value, self._other(other)), self.prime)

    def _other(self, other: object) -> Number:
        value = exact(other)
        return value if self.prime is None else _residue(value, self.prime)

    def _inverted(self, value: Number) -> Number:
        if value == 0:
            raise ZeroDivisionError("division by zero")
        return 1 / Fraction(value) if self.prime is None else pow(int(value), -1, self.prime)

    # --- comparison -------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return self.value == self._other(other)

    def __hash__(self) -> int:
        return hash((self.value, self.prime))

    def __bool__(self) -> bool:
        return self.value != 0

    def __lt__(self, other: object) -> bool:
        return self._compared(other, lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, ge)

    def __abs__(self) -> Entry:
        return Entry(abs(self._ordered()), self.prime)

    def _compared(self, other: object, comparison: Comparison) -> bool:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return comparison(self._ordered(), exact(other))

    def _ordered(self) -> Number:
        if self.prime is not None:
            raise NotExact("a prime field has no order")
        return self.value

    def __repr__(self) -> str:
        return str(self.value)


def exact(value: object) -> Number:
    """A number as an exact one.

    A float stands for the decimal that was typed, if it is a short one: 0.1 is 1/10. A longer one,
    such as that of 1/3, has been rounded.

    Raises:
        NotExact: it is no number, or a rounded one.
    """
    if isinstance(value, Entry):
        return value.value
    if isinstance(value, Number):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return _decimal(value)
    raise NotExact(f"{value!r:.60} of type {type(value).__name__} is no exact number")


def _decimal(value: float) -> Number:
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    text = repr(float(value))
    digits = text.partition("e")[0].replace(".", "").replace("-", "").strip("0")
    if not digits.isdigit() or len(digits) > MOST_DIGITS:
        raise NotExact(f"the number {text} is rounded")
    return Fraction(text)


def _residue(value: Number, prime: int) -> int:
    if isinstance(value, int):
        return value % prime
    return value.numerator * pow(value.denominator, -1, prime) % prime
