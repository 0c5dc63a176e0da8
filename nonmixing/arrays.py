"""Arrays as they come in: real, finite, of the right number of axes, and not to be changed."""

from __future__ import annotations

import operator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nonmixing.errors import InputError, ShapeError

Array: TypeAlias = NDArray[np.float64]

ORTHONORMAL_TOLERANCE: Final = 1e-10
"""How far from the identity a Gram matrix may be: rounding over a million rows stays below it."""


def real_array(name: str, value: ArrayLike, axes: int, *, copy: bool = True) -> Array:
    """The value as a read-only float64 array, checked.

    Args:
        name: What the caller calls it; the error message begins with it.
        value: Anything NumPy can read as numbers.
        axes: The number of axes it must have.
        copy: False where the caller gives the array away: it then becomes read-only itself.

    Returns:
        A read-only copy.

    Raises:
        InputError: Not numbers, not real, not finite, or empty.
        ShapeError: Another number of axes.
    """
    try:
        raw = np.asarray(value)
        if np.iscomplexobj(raw):
            raise TypeError("the numbers are complex")
        array = np.array(raw, dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{name}: real numbers are expected ({reason}); pass a NumPy array of them"
        ) from error
    if array.ndim != axes:
        raise ShapeError(
            f"{name}: got shape {array.shape}, {array.ndim} axes; {axes} are expected, reshape it"
        )
    if array.size == 0:
        raise InputError(f"{name}: empty, shape {array.shape}; every dimension must be at least 1")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{name}: entry {where} is {array[where]}; finite numbers are expected, "
            f"remove or replace the {int(bad.sum())} that are not"
        )
    array.setflags(write=False)
    return array


def orthonormal_columns(name: str, basis: Array) -> None:
    """Refuse a matrix whose columns are not orthonormal.

    Raises:
        InputError: They are not.
    """
    off = float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
    if off > ORTHONORMAL_TOLERANCE:
        raise InputError(
            f"{name}: its columns are not orthonormal, an entry of their Gram matrix is off by "
            f"{off:.3g} (at most {ORTHONORMAL_TOLERANCE:.0e} is expected); take numpy.linalg.qr"
        )


def whole_number(name: str, value: int, least: int) -> int:
    """The value as an int, if it is a whole number of at least `least`."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = least - 1
    if whole < least:
        raise InputError(f"{name}: got {value!r}; a whole number of at least {least} is expected")
    return whole
