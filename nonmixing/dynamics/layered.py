"""N ≥ 3 aligned balanced layers, W_i = O_i diag(a) O_{i−1}ᵀ with O_0 = R and O_N = P (M14).

Every mode is c = a^N of its own and the O_i stay, so that `depth_modes` is all of the flow. Where
singular values are equal or 0, R and P are one choice of many, as for two factors (ledger M13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nonmixing.dynamics.mode_laws import depth_modes
from nonmixing.dynamics.posing import settled_values, split_columns
from nonmixing.errors import NoClosedForm
from nonmixing.problem import Array, BilinearProblem


@dataclass(frozen=True, eq=False)
class LayeredFlow:
    """The layers at all times.

    Attributes:
        variables: W1 to WN, each (K, ·, ·), W1's columns in `right` and WN's rows in `left`.
        left: Shape (m, ·), orthonormal columns that hold the target's.
        right: Shape (n, ·), likewise.
        stats: How far the start is from aligned and from balanced, and what was left out.
    """

    variables: Mapping[str, Array]
    left: Array
    right: Array
    stats: Mapping[str, float]


def layered_flow(
    problem: BilinearProblem, start: Mapping[str, Array], times: Array, rounding: float
) -> LayeredFlow:
    """The exact flow of N layers.

    Args:
        problem: The problem, of `layers(N)`.
        start: W1 to WN, as `BilinearProblem.variables` returns them.
        times: Shape (K,).
        rounding: What deviation, relative to the Frobenius norm of all layers, is rounding.

    Raises:
        NoClosedForm: Decay, unequal rates, a mode below 0, or a start that is not aligned with the
            target's singular vectors or not balanced.
    """
    _check_problem(problem)
    layers = list(start.values())
    size = float(np.sqrt(sum(np.sum(layer**2) for layer in layers)))
    read = _Chain.of(problem, layers, rounding * size)
    sizes = np.abs(read.strengths)
    spread = sizes.max(axis=0) - sizes.min(axis=0)
    whole = size if size > 0 else 1.0
    misaligned = read.residual / whole
    uneven = float(spread.max(initial=0.0)) / whole
    if max(misaligned, uneven) > rounding:
        raise NoClosedForm(
            f"start: no closed form holds for it: the layers are not aligned with the target's "
            f"singular modes (relative deviation {misaligned:.2g}) or not balanced (a mode's "
            f"strength differs between layers by {uneven:.2g}, relative); at most {rounding:.1g} "
            "is rounding; call integrate(problem, start, times)"
        )
    c = np.prod(read.strengths, axis=0)
    if (c < 0).any():
        raise NoClosedForm(
            f"start: mode {read.modes[np.argmin(c)]} is {c.min():.3g}; for {len(layers)} layers a "
            "closed form is known for modes of at least 0; call integrate(problem, start, times)"
        )
    moved = depth_modes(read.s, c, len(layers), problem.rates[0] * times)
    # The root of a mode that has not moved yet is its strength but for rounding.
    a = moved ** (1 / len(layers))
    return LayeredFlow(
        {
            name: np.matmul(above * a[:, None, :], below.T)
            for name, (below, above) in zip(start, pairwise(read.frames), strict=True)
        },
        read.left,
        read.right,
        {"imbalance": uneven, "misalignment": misaligned, "neglected": read.neglected / whole},
    )


def _check_problem(problem: BilinearProblem) -> None:
    if problem.decay > 0:
        raise NoClosedForm(
            f"problem: with decay {problem.decay:.3g} no closed form of "
            f"{problem.parameterisation.name} is known; call integrate(problem, start, times)"
        )
    if len(set(problem.rates)) > 1:
        raise NoClosedForm(
            f"problem: the layers' rates are {', '.join(f'{r:.3g}' for r in problem.rates)}; a "
            "closed form is known where they are equal; call integrate(problem, start, times)"
        )


@dataclass(frozen=True, eq=False)
class _Chain:
    """The modes that layers carry on, from the right singular vectors to the left ones.

    Attributes:
        s: Singular values of the q modes that the start has.
        modes: Their places among the target's.
        frames: O_0 to O_N, orthonormal columns (·, q); O_0 in `right`, O_N in `left`.
        strengths: Shape (N, q), the diagonals of O_iᵀ W_i O_{i−1}.
        residual: The largest Frobenius norm of a W_i − O_i diag(a_i) O_{i−1}ᵀ.
        neglected: The largest length of a mode that was taken as 0.
        left: Shape (m, ·).
        right: Shape (n, ·).
    """

    s: Array
    modes: NDArray[np.intp]
    frames: Sequence[Array]
    strengths: Array
    residual: float
    neglected: float
    left: Array
    right: Array

    @classmethod
    def of(cls, problem: BilinearProblem, layers: Sequence[Array], lost: float) -> _Chain:
        """Follow each mode through the layers, the strongest first.

        What rounding turns one mode's direction towards a stronger one would grow by their ratio in
        every layer; orthogonalised in that order it does not.
        """
        svd, values = problem.svd, settled_values(problem.svd)
        right = split_columns(svd.R, layers[0].T, lost)[0]
        left = split_columns(svd.P, layers[-1], lost)[0]
        moving = int(np.count_nonzero(values))
        turn, other = np.eye(right.shape[1]), np.eye(left.shape[1])
        first = layers[0] @ right
        free = slice(moving, right.shape[1])
        for group in (*svd.subspaces, free):
            if group.stop - group.start > 1 and (group is free or group.stop <= moving):
                turn[group, group] = np.linalg.svd(first[:, group])[2].T
                if group is not free:
                    other[group, group] = turn[group, group]
        lengths = np.linalg.norm(first @ turn, axis=0)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > lost]
        narrowest = min(*(len(layer) for layer in layers[:-1]), left.shape[1])
        if len(order) > narrowest:
            raise NoClosedForm(
                f"start: the first layer is not aligned with the target's singular modes: it has "
                f"{len(order)} of them, and at most {narrowest} pass through the layers; call "
                "integrate(problem, start, times)"
            )
        inner = [first, *layers[1:-1], left.T @ layers[-1]]
        frames = [turn[:, order]]
        for layer in inner[:-1]:
            frames.append(_orthonormalised(layer @ frames[-1]))
        resting = order >= moving
        ends = other[:, np.where(resting, 0, order)]
        ends[:, resting] = 0.0
        arriving = (inner[-1] @ frames[-1])[moving:, resting]
        if resting.sum() > len(arriving):
            raise NoClosedForm(
                f"start: not aligned, {resting.sum()} modes of singular value 0 begin in the first "
                f"layer, and at most {len(arriving)} end in the last; call "
                "integrate(problem, start, times)"
            )
        ends[moving:, resting] = _orthonormalised(arriving)
        frames.append(ends)
        strengths, residual = _fit(inner, frames)
        dropped = np.delete(lengths, order).max(initial=0.0)
        all_values = np.append(values[:moving], np.zeros(right.shape[1] - moving))
        return cls(
            all_values[order], order, frames, strengths, residual, float(dropped), left, right
        )


def _fit(layers: Sequence[Array], frames: Sequence[Array]) -> tuple[Array, float]:
    """The diagonals of O_iᵀ W_i O_{i−1}, (N, q), and the largest norm of what is beside them."""
    strengths = np.empty((len(layers), frames[0].shape[1]))
    residual = 0.0
    for place, (layer, (below, above)) in enumerate(zip(layers, pairwise(frames), strict=True)):
        strengths[place] = np.sum(above * (layer @ below), axis=0)
        rest = layer - (above * strengths[place]) @ below.T
        residual = max(residual, float(np.linalg.norm(rest)))
    return strengths, residual


def _orthonormalised(columns: Array) -> Array:
    """An orthonormal basis of the columns, each turned from the one given as little as it can be.

    In order: a column gives way to those before it. Of a column of zeros it takes any direction.
    """
    q, r = np.linalg.qr(columns)
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)
