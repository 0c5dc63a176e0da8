"""The target of a problem: an array, its singular factors, or a linear operator of known rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from nonmixing.arrays import Array, orthonormal_columns, real_array, whole_number
from nonmixing.errors import InputError, ShapeError

OVERSAMPLING: Final = 10
"""Columns beyond the rank in the range finder, which make a failure improbable beyond 1e-10 [Halko,
Martinsson, Tropp 2011, section 4.3], and which show whether the rank was understated."""

RANK_TOLERANCE: Final = 1e-10
"""The largest singular value beyond its stated rank, relative to the first, that an operator may
have: what is left of float64 in an operator that is itself computed in several steps."""


@dataclass(frozen=True, eq=False)
class TargetSVD:
    """The target as P diag(s) Rᵀ: `P` (m, k), `s` (k,) falling, `R` (n, k).

    Where the target was given as an array k = min(m, n), otherwise k is the number of factors.
    """

    P: Array
    s: Array
    R: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return len(self.P), len(self.R)

    @property
    def rounding(self) -> float:
        """What a singular value may be off by: max(m, n) ε s₁."""
        return max(self.shape) * float(np.finfo(np.float64).eps) * float(self.s[0])

    @property
    def rank(self) -> int:
        """The number of singular values above `rounding`."""
        return int(np.sum(self.s > self.rounding))

    @property
    def operator(self) -> Array:
        """The target itself, shape (m, n)."""
        return (self.P * self.s) @ self.R.T

    def modes(self, operator: Array) -> Array:
        """The interaction matrix C = Pᵀ Q R (k, k) of an operator Q (m, n)."""
        return self.P.T @ operator @ self.R

    @property
    def subspaces(self) -> tuple[slice, ...]:
        """The modes in groups of equal singular values.

        Two neighbours are equal when they differ by at most 4 `rounding`, which is what two values
        that are known to within one can differ by if they are, and a factor of two for the SVD's
        own constant. Inside a group of more than one the singular vectors are one choice of many.
        """
        cuts = np.flatnonzero(-np.diff(self.s) > 4 * self.rounding) + 1
        edges = [0, *cuts.tolist(), len(self.s)]
        return tuple(slice(a, b) for a, b in pairwise(edges))


Target: TypeAlias = Any
"""An array (m, n); factors (P (m, k), s (k,), R (n, k)), a tuple, of P diag(s) Rᵀ; or, with a
rank, a SciPy `LinearOperator` or sparse array."""


def read_target(value: Target, rank: int | None) -> Array | TargetSVD:
    """The target as a checked array, or as its singular factors where it did not come as an array.

    Factors (P, s, R) stand for P diag(s) Rᵀ: of `P, s, vh = numpy.linalg.svd(target,
    full_matrices=False)` they are (P, s, vh.T).

    Args:
        value: See `Target`.
        rank: The rank of a `LinearOperator` (or of anything that can be multiplied with).

    Raises:
        InputError: Not finite real numbers, P or R without orthonormal columns, a negative singular
            value, an operator without a rank or of a higher one.
        ShapeError: Shapes that do not fit each other.
    """
    if isinstance(value, TargetSVD):
        value = (value.P, value.s, value.R)
    if hasattr(value, "Vh"):  # numpy.linalg.svd's own tuple; of a square one no shape would tell
        raise InputError(
            "target: got the result of numpy.linalg.svd as it is, P diag(s) Vh; P diag(s) Rᵀ is "
            "expected, pass (result.U, result.S, result.Vh.T)"
        )
    if rank is not None:
        return _range_finder(value, rank)
    if _is_factors(value):
        return _factored(*value)
    if hasattr(value, "matvec") or hasattr(value, "tocsr"):
        raise InputError(
            f"rank: missing, and the target is a {type(value).__name__}; pass rank=, the number of "
            "its singular values that are not 0, or the target as an array"
        )
    return real_array("target", value, 2)


def _is_factors(value: Any) -> bool:
    """Whether it is a tuple (P, s, R), and not three rows; three matrices are no array (m, n)."""
    if not isinstance(value, tuple):
        return False
    parts = cast("tuple[Any, ...]", value)
    return len(parts) == 3 and np.ndim(parts[0]) == 2


def singular_factors(target: Array) -> TargetSVD:
    """The thin singular value decomposition of an array, k = min(m, n), deterministic signs."""
    left, values, right = np.linalg.svd(target, full_matrices=False)
    return _signed(left, values, right.T)


def leading_signs(columns: Array) -> Array:
    """For each column the sign of its first entry that is as large as any, to 1e-8."""
    sizes = np.abs(columns)
    first = np.argmax(sizes >= (1 - 1e-8) * sizes.max(axis=0), axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def _signed(left: Array, values: Array, right: Array) -> TargetSVD:
    """The factors with the leading entry of each left vector positive."""
    signs = leading_signs(left)
    parts = (left * signs, values, right * signs)
    for part in parts:
        part.setflags(write=False)
    return TargetSVD(*parts)


def _factored(left: ArrayLike, values: ArrayLike, right: ArrayLike) -> TargetSVD:
    """The singular factors as given, sorted, with the signs that the SVD of an array would have."""
    if np.ndim(values) != 1:
        raise ShapeError(
            f"target: s: got shape {np.shape(values)}; a vector of singular values, shape (k,), is "
            "expected, since the target is P diag(s) Rᵀ"
        )
    P, s, R = (
        real_array(f"target: {name}", part, axes)
        for name, part, axes in (("P", left, 2), ("s", values, 1), ("R", right, 2))
    )
    if not P.shape[1] == len(s) == R.shape[1]:
        raise ShapeError(
            f"target: P, s and R have shapes {P.shape}, {s.shape} and {R.shape}; as many columns "
            "in P and R as singular values in s are expected: the target is P diag(s) Rᵀ, and R is "
            "vh.T of numpy.linalg.svd(target, full_matrices=False)"
        )
    for name, basis in (("P", P), ("R", R)):
        orthonormal_columns(f"target: {name}", basis)
    if (s < 0).any():
        raise InputError(
            f"target: s: {s[s < 0][0]:.6g} is negative; singular values are not, turn the sign of "
            "that column of R instead"
        )
    order = np.argsort(-s, kind="stable")
    return _signed(P[:, order], s[order], R[:, order])


def _range_finder(value: Any, rank: int) -> TargetSVD:
    """The singular factors of an operator of known rank, from two products with a few columns.

    The columns are random and always the same [Halko, Martinsson, Tropp 2011, algorithms 4.1 and
    5.1]. An operator that really has that rank is found to rounding.
    """
    from scipy.sparse.linalg import aslinearoperator

    try:
        operator = aslinearoperator(value)
    except TypeError as error:
        raise InputError(f"target: not a linear operator ({error})") from error
    if np.issubdtype(operator.dtype, np.complexfloating):
        raise InputError("target: the operator is complex; a real one is expected")
    m, n = operator.shape
    if whole_number("rank", rank, 1) > min(m, n):
        raise InputError(
            f"rank: got {rank}; at most {min(m, n)} is expected for a target of shape {(m, n)}"
        )
    columns = min(rank + OVERSAMPLING, m, n)
    probes = np.random.default_rng(0).standard_normal((n, columns))
    basis = np.linalg.qr(real_array("target", operator.matmat(probes), 2))[0]
    try:
        turned = operator.rmatmat(basis)
    except (NotImplementedError, TypeError) as error:  # which of them depends on SciPy's version
        raise InputError(
            "target: the operator has no product with its transpose "
            f"({' '.join(str(error).split())}); define rmatvec or rmatmat"
        ) from error
    rows = real_array("target", turned, 2)  # (n, columns), the transpose of what is left of it
    right, values, inner = np.linalg.svd(rows, full_matrices=False)
    if columns > rank and values[rank] > RANK_TOLERANCE * values[0]:
        raise InputError(
            f"rank: got {rank}, but the operator's next singular value is at least "
            f"{values[rank]:.3g}, beside a first of {values[0]:.3g}; pass the rank it has"
        )
    return _signed(basis @ inner[:rank].T, values[:rank], right[:, :rank])
