"""The interaction matrix C = Pᵀ Q R over time: strengths of the modes, and what mixes them.

Where singular values of the target are equal its singular vectors are one choice of many, and so
are single entries of C. Such modes are taken by subspace: what is read off a block of C does not
depend on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nonmixing.arrays import Array
from nonmixing.target import TargetSVD


@dataclass(frozen=True, eq=False)
class Interaction:
    """C at K times, as a product, and the subspaces in which it is read.

    Attributes:
        rows: PᵀU, shape (K, k, r).
        columns: RᵀV, shape (K, k, r); C = rows columnsᵀ.
        svd: The target, whose singular values s (k,) group the modes.
    """

    rows: Array
    columns: Array
    svd: TargetSVD

    def strengths(self) -> Array:
        """c_i = C_ii, shape (K, k); for a subspace its own strengths, falling.

        A subspace of equal s > 0 has one free rotation, the same for P and R: its strengths are the
        eigenvalues of the symmetric part of its block. One of s = 0 has a rotation for each of P
        and R: its strengths are the singular values of its block.
        """
        found = np.einsum("tir,tir->ti", self.rows, self.columns)
        for group in self._shared():
            left, right = self.rows[:, group], self.columns[:, group]
            if self._is_zero(group):
                sizes = _singular_values(left, right)
                found[:, group] = 0.0
                found[:, group.start : group.start + sizes.shape[1]] = sizes
            else:
                block = left @ np.swapaxes(right, 1, 2)
                symmetric = (block + np.swapaxes(block, 1, 2)) / 2
                found[:, group] = np.linalg.eigvalsh(symmetric)[:, ::-1]
        return found

    def mixing(self, *, relative: bool) -> Array:
        """The largest |C_ij| off the diagonal, shape (K,), by subspace where s_i is shared.

        Args:
            relative: Relative to the smaller of |c_i| and |c_j|, where a subspace counts with its
                largest strength; 0 where C_ij is 0 too.
        """
        scales = np.abs(self.strengths()) if relative else np.ones(self.rows.shape[:2])
        # One time at a time: all at once is K k² numbers.
        return np.array(
            [
                self._mixing(rows @ columns.T, scale)
                for rows, columns, scale in zip(self.rows, self.columns, scales, strict=True)
            ]
        )

    def _mixing(self, crossed: Array, scale: Array) -> float:
        shared = tuple(self._shared())
        alone = np.ones(len(crossed), np.bool_)
        for group in shared:
            alone[group] = False
        entries = np.abs(crossed[np.ix_(alone, alone)])
        np.fill_diagonal(entries, 0.0)
        least = np.minimum.outer(scale[alone], scale[alone])
        worst = float(_ratio(entries, least).max(initial=0.0))
        for index, group in enumerate(shared):
            size = scale[group].max()
            beside = np.minimum(scale[alone], size)
            for strip in (crossed[group][:, alone].T, crossed[alone][:, group]):
                norms = np.linalg.norm(strip, axis=1)
                worst = max(worst, float(_ratio(norms, beside).max(initial=0.0)))
            for other in shared[:index]:
                both = np.array([_norm(crossed[group, other]), _norm(crossed[other, group])])
                worst = max(worst, float(_ratio(both, min(size, scale[other].max())).max()))
            if not self._is_zero(group):
                block = crossed[group, group]
                skew = np.array([_norm((block - block.T) / 2)])
                worst = max(worst, float(_ratio(skew, size)[0]))
        return worst

    def _shared(self) -> Iterator[slice]:
        """The subspaces of more than one mode."""
        return (group for group in self.svd.subspaces if group.stop - group.start > 1)

    def _is_zero(self, group: slice) -> bool:
        return float(self.svd.s[group].max()) <= self.svd.rounding


def _singular_values(left: Array, right: Array) -> Array:
    """The singular values (K, min(d, r)) of left rightᵀ, with left and right (K, d, r)."""
    inner = np.linalg.qr(left, mode="r") @ np.swapaxes(np.linalg.qr(right, mode="r"), 1, 2)
    return np.linalg.svd(inner, compute_uv=False)


def _norm(block: Array) -> float:
    return float(np.linalg.norm(block, 2))


def _ratio(value: Array, scale: Array | float) -> Array:
    """value/scale; 0 where the value is 0, infinite where only the scale is."""
    bound = np.broadcast_to(np.asarray(scale, np.float64), value.shape)
    quotient = np.divide(value, bound, out=np.full(value.shape, np.inf), where=bound > 0)
    return np.where(value == 0, 0.0, quotient)
