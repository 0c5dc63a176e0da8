"""Aligned starts, U = P diag(a) Oᵀ and V = R diag(b) Oᵀ, in whichever singular bases they are so.

Where singular values are equal, or 0, P and R are one choice of many: a start may be aligned with
another choice (ledger M13). A group of equal s > 0 has one rotation, the same for both sides. Of
s = 0 both sides are free, and so is what lies outside P and R altogether.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nonmixing.dynamics.posing import Posed
from nonmixing.dynamics.riccati import Coordinates
from nonmixing.problem import Array


@dataclass(frozen=True, eq=False)
class Alignment:
    """A start read as aligned, and how well that fits.

    Attributes:
        state: PᵀU and RᵀV in the bases below, shape (q, r) each, a row a mode; nothing outside.
        s: Shape (q,).
        left: Orthonormal columns (m, ·): the left vectors of the modes `left_modes`. A mode without
            a left vector, of s = 0, has none in U.
        right: The same on the right.
        left_modes: Which mode each column of `left` belongs to.
        right_modes: The same on the right.
        deviation: From aligned, relative, below 1 always.
        neglected: The largest part left out as rounding, relative.
    """

    state: Coordinates
    s: Array
    left: Array
    right: Array
    left_modes: NDArray[np.intp]
    right_modes: NDArray[np.intp]
    deviation: float
    neglected: float

    @property
    def frame(self) -> Array:
        """The unit vectors (q, r) of the modes in the columns of U and V: Oᵀ."""
        return directions(self.state)[0]


def read_alignment(posed: Posed, tolerance: float, *, turned: bool) -> Alignment:
    """The start in the bases of `problem.svd`, or, if asked for, in others where it fits better.

    Args:
        posed: The problem and the start.
        tolerance: What deviation is rounding.
        turned: Whether to look at other bases.
    """
    everything = np.arange(len(posed.s))
    direct = Alignment(
        posed.state,
        posed.s,
        posed.left,
        posed.right,
        everything,
        everything,
        misalignment(posed.state),
        posed.neglected,
    )
    free = any(group.stop - group.start > 1 for group in posed.groups) or (posed.s == 0).any()
    outside = len(posed.state.left_rest) + len(posed.state.right_rest)
    if direct.deviation <= tolerance or not turned or not (free or outside):
        return direct
    other = _turned(posed, tolerance)
    return other if other.deviation < direct.deviation else direct


def directions(state: Coordinates) -> tuple[Array, Array]:
    """The unit vectors (k, r) along the longer of a mode's rows in PᵀU and RᵀV, and its length."""
    left, right = np.linalg.norm(state.left, axis=1), np.linalg.norm(state.right, axis=1)
    longer = np.where((left >= right)[:, None], state.left, state.right)
    lengths = np.maximum(left, right)
    return longer / np.where(lengths > 0, lengths, 1.0)[:, None], lengths


def misalignment(state: Coordinates) -> float:
    """How far a start is from U = P diag(a) Oᵀ, V = R diag(b) Oᵀ; 0 for aligned, below 1 always.

    The largest of: what lies outside P and R, what a mode's two rows have across each other, and
    the overlap o_i · o_j of two modes. Each is relative to the whole, and the overlap counts with
    the length of the shorter of the two, so that rounding of U and V alone makes a few units of it.
    """
    size = float(np.linalg.norm(state.stacked))
    if size == 0:
        return 0.0
    frame, lengths = directions(state)
    longer = frame * lengths[:, None]
    across = [
        rows - np.sum(rows * frame, axis=1, keepdims=True) * frame
        for rows in (state.left, state.right)
    ]
    stray = [float(np.linalg.norm(part)) for part in (*across, state.left_rest, state.right_rest)]
    # |o_i · o_j| times l_i l_j / (l_i + l_j); where both lengths are 0 so is the numerator.
    safe = np.where(lengths > 0, lengths, 1.0)
    overlap = longer @ longer.T
    np.abs(overlap, out=overlap)
    overlap /= safe[:, None] + safe
    np.fill_diagonal(overlap, 0.0)
    return max(*stray, float(overlap.max())) / size


def _turned(posed: Posed, tolerance: float) -> Alignment:
    """The start in the singular bases in which it is most nearly aligned."""
    state, moving = posed.state, int(np.count_nonzero(posed.s))
    left, right = posed.left[:, :moving].copy(), posed.right[:, :moving].copy()
    rows, columns = state.left[:moving].copy(), state.right[:moving].copy()
    for group in posed.groups:
        if group.stop - group.start > 1 and group.stop <= moving:
            # Any combination of the two blocks has the singular vectors of both. In a generic one
            # two modes coincide where they are free to turn; it has no meaning else.
            both = np.cos(1) * rows[group] + np.sin(1) * columns[group]
            turn = np.linalg.svd(both)[0]
            rows[group], columns[group] = turn.T @ rows[group], turn.T @ columns[group]
            left[:, group], right[:, group] = left[:, group] @ turn, right[:, group] @ turn
    outer = np.vstack([state.left[moving:], state.left_rest])
    beyond = np.vstack([state.right[moving:], state.right_rest])
    size = float(np.linalg.norm(state.stacked))
    # The modes of s = 0 are the common singular directions of both blocks, again in a combination.
    columns_of = np.linalg.svd(np.vstack([np.cos(1) * outer, np.sin(1) * beyond]))[2]
    spare, zeros, lost = _free_modes(outer, columns_of, tolerance * size)
    other, empty, missed = _free_modes(beyond, columns_of, tolerance * size)
    found = Coordinates(
        np.vstack([rows, zeros]),
        np.vstack([columns, empty]),
        np.empty((0, rows.shape[1])),
        np.empty((0, rows.shape[1])),
    )
    present, there = (np.flatnonzero(block.any(axis=1)) for block in (zeros, empty))
    modes = np.arange(moving)
    return Alignment(
        found,
        np.concatenate([posed.s[:moving], np.zeros(len(zeros))]),
        _basis(left, posed.left, spare),
        _basis(right, posed.right, other),
        np.concatenate([modes, moving + present]),
        np.concatenate([modes, moving + there]),
        misalignment(found),
        max(posed.neglected, lost / size, missed / size) if size > 0 else 0.0,
    )


def _basis(turned: Array, whole: Array, free: Array) -> Array:
    """The turned columns, then those of s = 0; one that no mode has where there are none at all."""
    basis = np.hstack([turned, whole[:, turned.shape[1] :] @ free])
    return basis if basis.shape[1] else whole[:, :1]


def _free_modes(block: Array, directions: Array, lost: float) -> tuple[Array, Array, float]:
    """An orthonormal basis of a block's columns along the directions, one for each that it has.

    Returns:
        The basis (·, q'); the coordinates (q, r) in it, a row for each direction, zero where the
        block has nothing longer than `lost`; the largest length left out.
    """
    along = block @ directions.T
    lengths = np.linalg.norm(along, axis=0)
    # Longest first, so that the rounding of a long one does not turn a short one; if they are
    # aligned there are no more of them than rows.
    order = np.argsort(-lengths, kind="stable")[: min(np.sum(lengths > lost), len(block))]
    kept = np.sort(order)
    basis = np.linalg.qr(along[:, order])[0][:, np.argsort(order)]
    rows = np.zeros(directions.shape)
    rows[kept] = basis.T @ block
    return basis, rows, float(np.delete(lengths, kept).max(initial=0.0))
