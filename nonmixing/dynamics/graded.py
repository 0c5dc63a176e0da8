"""A basis of the range of [D Z; C] where the diagonal D has entries that no float holds.

The rows of Z grow like e^{g_i t}; those of C (r, r) are of ordinary size, and C is invertible. The
basis is the unit trapezoidal factor B of Gaussian elimination with complete pivoting, A = B U. Its
entries are at most 1, and are known without the rows' sizes: b_ij = (ratio of the rows without
them) e^{(g_i − g_j)t}. Each row is accurate to its own size, as pivots by size keep it [Cox and
Higham 1998 for the QR factorisation], and B is well conditioned however far apart the sizes are.

From one time to the next the pivots are mostly the same. They are tried again first: the factor
with given pivots is one LU factorisation of those rows and one triangular solve for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dgetrf, dlaswp

from nonmixing.arrays import Array

APART: Final = 1e4
"""The spread in sizes of the orders of pivots at t = ∞, beyond any logarithm of a float's size."""

LARGEST: Final = float(np.log(np.finfo(np.float64).max))
"""The largest exponent of a float."""

TOLERATED: Final = 4.0
"""How large an entry may be with the pivots of another time before they are chosen anew: a factor
of the rounding of that row, so that it costs less than a digit."""


class Graded:
    """The matrices A(t) = [D(t) Z; C(t)], D = diag(w_i(t) e^{g_i t})."""

    def __init__(self, rates: Array, kappa: Array, values: Array, rows: Array) -> None:
        """Of G rows of growing size.

        Args:
            rates: g (G,), positive.
            kappa: Shape (G,), of which the rates differ by one constant.
            values: Shape (G,), of whose squares those of kappa differ by one constant.
            rows: Z (G, r).
        """
        self.rates, self.rows = rates, rows
        self._kappa, self._values = kappa, values
        self._pivots: list[int] = []
        self._leads = np.empty((0, 0))

    def basis(self, weights: Array, core: Array, time: float) -> Array:
        """B (G + r, r) at a time, infinity included, with weights w (G,) and the core C (r, r)."""
        stack = np.concatenate([self.rows * weights[:, None], core])
        found = self._again(stack, time) if self._pivots else None
        if found is not None:
            return found
        found, self._pivots = self._eliminated(stack, time)
        self._leads = np.stack([self._lead(pivot) for pivot in self._pivots], axis=1)
        return found

    def _again(self, stack: Array, time: float) -> Array | None:
        """The factor with the pivots of the time before, unless an entry is too large."""
        pivots, growing = self._pivots, len(self.rates)
        lu, swaps, info = dgetrf(stack[pivots].T)
        if info != 0:
            return None
        scale = np.diag(lu)
        columns = cast("Array", dlaswp(stack.T, swaps))
        solved = solve_triangular(
            np.asarray(lu, np.float64), columns, lower=True, unit_diagonal=True, check_finite=False
        )
        ratios = np.asarray(solved, np.float64).T
        ratios /= scale
        ratios[pivots] = np.triu(lu / scale[:, None]).T
        with np.errstate(over="ignore"):
            ratios[:growing] *= np.exp(np.minimum(_product(self._leads, time), LARGEST))
        ratios[growing:] *= self._falls(pivots, time)
        largest = max(ratios.max(), -ratios.min())
        return ratios if largest <= TOLERATED else None

    def _eliminated(self, stack: Array, time: float) -> tuple[Array, list[int]]:
        """The factor and its pivots, by complete pivoting.

        Columns of A are interchanged; those of the factor are a basis in any order.
        """
        columns = np.ascontiguousarray(stack.T)  # one row for each column of A
        width, count = columns.shape
        order, growing = self._order(count, time), len(self.rates)
        basis, pivots = np.empty((width, count)), list[int]()
        for step in range(width):
            left = columns[step:]  # what the pivots so far have left over, by the columns left
            size = np.maximum(left.max(axis=0), -left.min(axis=0))
            with np.errstate(divide="ignore"):
                pivot = int(np.argmax(np.log(size) + order))
            lead = int(np.argmax(np.abs(left[:, pivot])))
            left[[0, lead]] = left[[lead, 0]]
            ratios = left[0] / left[0, pivot]
            left[1:] -= left[1:, pivot, None] * ratios
            left[1:, pivot] = 0.0
            # A row ahead of the pivot is used up, or in the span of those that are: its ratio is 0,
            # or so small that the product is at most 1.
            exponent = _product(self._lead(pivot), time)
            ratios[:growing] *= np.exp(np.minimum(exponent, LARGEST))
            ratios[growing:] *= self._falls([pivot], time)
            basis[step] = ratios
            pivots.append(pivot)
        return np.ascontiguousarray(basis.T), pivots

    def _order(self, count: int, time: float) -> Array:
        """The logarithms of the sizes of e^{g_i t}, up to a monotone map at ∞."""
        order, growing = np.zeros(count), len(self.rates)
        if np.isinf(time):
            order[:growing] = APART * (1 + np.unique(self.rates, return_inverse=True)[1])
        else:
            order[:growing] = self.rates * time
        return order

    def _lead(self, pivot: int) -> Array:
        """How much faster each of the growing rows grows than the pivot.

        Differences of two κ are taken through s² − s'², so that close rates do not cancel.
        """
        if pivot >= len(self.rates):
            return self.rates
        apart = (self._values - self._values[pivot]) * (self._values + self._values[pivot])
        return apart / (self._kappa + self._kappa[pivot])

    def _falls(self, pivots: Sequence[int], time: float) -> Array:
        """How a row of ordinary size falls behind each of the pivots."""
        rates = np.append(self.rates, np.zeros(self.rows.shape[1]))[pivots]
        return np.exp(-_product(rates, time))


def _product(rates: Array, time: float) -> Array:
    """Rates times a time that may be infinite; 0 where the rate is 0."""
    if np.isinf(time):
        return np.where(rates == 0, 0.0, np.where(rates == 0, 1.0, rates) * time)
    return rates * time
