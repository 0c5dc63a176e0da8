"""Exact reduction to the space that a flow lives in.

Every velocity of a flow of ½‖Q − T‖² is a combination of columns of the start and of T, on either
side. So the columns never leave the span of [U₀, P] on the left and [V₀, R] on the right, with
T = P S Rᵀ of rank k, and in orthonormal bases of the two spans an m x n problem is one of at most
(r + k) x (r + k), of the same form, with nothing neglected. The same holds for whatever else turns
with the two spaces: gates, layers, weight decay, learning rates a factor. A loss that reads both
sides as one space (F5, F6) needs the joint span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nonmixing.arrays import Array
from nonmixing.errors import InputError
from nonmixing.parameterisation import Parameterisation
from nonmixing.problem import BilinearProblem, State
from nonmixing.target import TargetSVD, singular_factors

EQUIVARIANT: Final = frozenset(
    ("gradient-descent heavy-ball nesterov weight-decay clip-norm shampoo muon").split()
)
"""Optimisers that turn with the space, so that their steps stay in the span."""

ELEMENTWISE: Final = frozenset("clip-value sign adam adamw rmsprop".split())
"""Optimisers that read single entries, which depend on the basis."""

INSIDE: Final = 1e-12
"""The part of the target outside a basis, relative to the whole, that is rounding: what projecting
on a basis of a few hundred columns leaves."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem and a start in the space that the flow lives in.

    Attributes:
        problem: The problem there: target (p, q), p ≤ r + k and q ≤ r + k.
        start: The start there, U (p, r) and V (q, r).
        left: Shape (m, p), orthonormal columns; U = left @ start.U exactly. None where nothing is
            gained on this side: the identity.
        right: Shape (n, q), the same for V.
    """

    problem: BilinearProblem
    start: State
    left: Array | None
    right: Array | None


def reduced(
    problem: BilinearProblem, start: State, *, optimiser: str = "gradient-descent"
) -> Reduction:
    """A problem and a start in the space that the flow lives in, by one QR a side.

    Args:
        problem: The problem, target (m, n) of rank k.
        start: The state at time 0.
        optimiser: What will move the state, by name; a gradient flow goes where gradient descent
            goes.

    Returns:
        The reduction. Nothing of size m x n is formed unless the target came as an array; of an
        array, singular values below rounding (max(m, n) ε s₁) are left out.

    Raises:
        InputError: The reduction does not hold, or the optimiser is not known.
        ShapeError: A start that does not fit the target.
    """
    return reductions(problem, [start], optimiser=optimiser)[0]


def reductions(
    problem: BilinearProblem, starts: Sequence[State], *, optimiser: str = "gradient-descent"
) -> list[Reduction]:
    """As `reduced`, for several starts: those of one width share one small problem.

    Raises:
        InputError: The reduction does not hold, or the optimiser is not known.
        ShapeError: A start that does not fit the target.
    """
    reason = obstacle(problem, optimiser)
    if reason:
        raise InputError(f"reduced: {reason}")
    fixed = _target_span(problem)
    small: dict[tuple[int, int], BilinearProblem] = {}
    found: list[Reduction] = []
    for start in starts:
        variables = problem.variables(start)
        left, right = (
            _with_columns(basis, _columns(problem.parameterisation, variables, side))
            for side, basis in zip(problem.parameterisation.target_shape, fixed, strict=True)
        )
        shape = (_size(problem.shape[0], left), _size(problem.shape[1], right))
        if left is None and right is None:
            found.append(Reduction(problem, start, None, None))
            continue
        if shape not in small:
            small[shape] = _restricted(problem, left, right)
        inner = small[shape]
        turn = turned(problem.parameterisation, variables, left, right)
        found.append(Reduction(inner, inner.state(turn), left, right))
    return found


def obstacle(problem: BilinearProblem, optimiser: str = "gradient-descent") -> str:
    """Why the reduction does not hold, in one line; empty where it does.

    Raises:
        InputError: The optimiser is not known.
    """
    if optimiser in ELEMENTWISE:
        return (
            f"{optimiser} reads single entries, which depend on the basis, so that its steps leave "
            "the span of start and target; run it on the whole problem"
        )
    if optimiser == "sgd":
        return (
            "sgd moves along single samples, which are not in the span of start and target; run it "
            "on the whole problem"
        )
    if optimiser not in EQUIVARIANT:
        known = ", ".join(sorted(EQUIVARIANT | ELEMENTWISE | {"sgd"}))
        raise InputError(f"optimiser: got {optimiser!r}; one of {known} is expected")
    model = problem.parameterisation
    for name, shape in model.constants.items():
        if set(shape) & set(model.target_shape) and name != model.offset:
            value = model.values[name]
            if not np.array_equal(value, value[0, 0] * np.eye(len(value))):
                return (
                    f"{name} is not a multiple of the identity, so that the flow leaves the span "
                    "of start and target; integrate the whole problem"
                )
    return ""


def restricted(
    problem: BilinearProblem, left: Array | None, right: Array | None
) -> BilinearProblem | None:
    """The problem in given bases, or nothing where they do not hold all of the target.

    Args:
        problem: The problem, target (m, n).
        left: Shape (m, p), orthonormal columns; None for the identity.
        right: Shape (n, q), likewise.
    """
    if left is None and right is None:
        return problem
    if obstacle(problem):
        return None
    svd = _moving_target(problem)
    size = float(np.linalg.norm(svd.s))
    for basis, vectors in ((left, svd.P), (right, svd.R)):
        if basis is not None:
            outside = (vectors - basis @ (basis.T @ vectors)) * svd.s
            if float(np.linalg.norm(outside)) > INSIDE * size:
                return None
    return _restricted(problem, left, right)


def lifted(
    model: Parameterisation,
    variables: Mapping[str, Array],
    left: Array | None,
    right: Array | None,
) -> dict[str, Array]:
    """The variables with these coordinates in the bases; the inverse of `turned` on their span."""
    back = (None if left is None else left.T, None if right is None else right.T)
    return turned(model, variables, *back)


def turned(
    model: Parameterisation,
    arrays: Mapping[str, Array],
    left: Array | None,
    right: Array | None,
) -> dict[str, Array]:
    """Coordinates in the bases: each axis that is the target's is projected; the rest stays.

    Args:
        model: Says which axes are the target's.
        arrays: Variables, constants or the target ("T"), one or a stack (..., ·, ·) each.
        left: Shape (m, p), orthonormal columns; None for the identity.
        right: Shape (n, q), likewise.
    """
    shapes = {**model.constants, **model.variables, "T": model.target_shape}
    # Where the target is square the two are the same basis.
    bases = dict(zip(model.target_shape, (left, right), strict=True))
    result: dict[str, Array] = {}
    for name, array in arrays.items():
        rows, columns = (bases.get(symbol) for symbol in shapes[name])
        once = array if rows is None else rows.T @ array
        result[name] = once if columns is None else once @ columns
    return result


def _restricted(
    problem: BilinearProblem, left: Array | None, right: Array | None
) -> BilinearProblem:
    """The problem in the bases, which hold all of the target."""
    model = problem.parameterisation
    values = dict(model.values)
    sizes = (_size(problem.shape[0], left), _size(problem.shape[1], right))
    lengths = dict(zip(model.target_shape, sizes, strict=True))
    for name, shape in model.constants.items():
        if name == model.offset:
            values |= turned(model, {name: values[name]}, left, right)
        elif set(shape) & set(model.target_shape):
            values[name] = values[name][0, 0] * np.eye(lengths[shape[0]])
    return BilinearProblem(
        _small_target(problem, left, right),
        decay=problem.decay,
        rates=problem.rates,
        parameterisation=replace(model, values=values),
    )


def _size(whole: int, basis: Array | None) -> int:
    return whole if basis is None else basis.shape[1]


def _small_target(problem: BilinearProblem, left: Array | None, right: Array | None) -> Array:
    """leftᵀ T right, from the factors of T; exactly symmetric where T is."""
    if problem.parameterisation.offset:
        model = problem.parameterisation
        return turned(model, {"T": problem.target}, left, right)["T"]
    svd, rank = problem.svd, problem.svd.rank
    P, R = svd.P[:, :rank], svd.R[:, :rank]
    rows = P if left is None else left.T @ P
    columns = R if right is None else right.T @ R
    target = (rows * svd.s[:rank]) @ columns.T
    return (target + target.T) / 2 if "T" in problem.parameterisation.symmetric else target


def _moving_target(problem: BilinearProblem) -> TargetSVD:
    """The singular factors, to their rank, of what the product of the factors is driven to."""
    model = problem.parameterisation
    svd = (
        singular_factors(problem.target - model.values[model.offset])
        if model.offset
        else problem.svd
    )
    return TargetSVD(svd.P[:, : svd.rank], svd.s[: svd.rank], svd.R[:, : svd.rank])


def _target_span(problem: BilinearProblem) -> tuple[Array, Array]:
    """Orthonormal bases of the target's columns and rows; of both together where it is square."""
    svd = _moving_target(problem)
    if not problem.parameterisation.square:
        return svd.P, svd.R
    # P and R may share directions, so that a plain QR of both would invent others.
    basis, sizes, _ = np.linalg.svd(np.hstack([svd.P, svd.R]), full_matrices=False)
    joint = basis[:, sizes > len(basis) * float(np.finfo(np.float64).eps) * 2]
    return joint, joint


def _columns(model: Parameterisation, variables: Mapping[str, Array], side: str) -> Array:
    """The variables' columns in the space of that side."""
    parts: list[Array] = []
    for name, (rows, columns) in model.variables.items():
        if rows == side:
            parts.append(variables[name])
        if columns == side:
            parts.append(variables[name].T)
    return np.hstack(parts)


def _with_columns(basis: Array, columns: Array) -> Array | None:
    """An orthonormal basis of the span of both; its first columns are the given basis.

    None where it would be the whole space. One Householder QR, so that it is orthonormal even where
    the columns are in the span already but for rounding.
    """
    held = basis.shape[1]
    if held + columns.shape[1] >= len(basis):
        return None
    q, _ = np.linalg.qr(np.hstack([basis, columns]))
    q[:, :held] = basis  # they differ by signs and rounding
    return q
