"""A problem and a start in the target's singular bases, and how far the start is from balanced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonmixing.dynamics.riccati import Coordinates
from nonmixing.errors import NoClosedForm
from nonmixing.problem import Array, BilinearProblem, Factors
from nonmixing.target import TargetSVD


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem and a start with both rates 1, in the target's singular bases.

    Attributes:
        start: The start, each factor divided by the root of its rate.
        state: Its coordinates.
        s: Singular values, divided by η = √(η_U η_V); equal ones are exactly equal, and absent ones
            exactly 0: their computed difference is rounding, and late it would decide alone which
            of them is learned.
        decay: d, likewise.
        speed: η², by which times are multiplied.
        left: P and an orthonormal basis of what U has outside it, shape (m, ·).
        right: R and an orthonormal basis of what V has outside it, shape (n, ·).
        neglected: The larger part outside P or R that was taken as rounding, relative to the start.
        groups: The rows of PᵀU and RᵀV in groups of equal s, in order.
    """

    start: Factors
    state: Coordinates
    s: Array
    decay: float
    speed: float
    left: Array
    right: Array
    neglected: float
    groups: tuple[slice, ...]

    @classmethod
    def of(cls, problem: BilinearProblem, start: Factors, rounding: float) -> Posed:
        """The problem and the start so posed; `rounding` is relative to the whole start."""
        rates = np.sqrt(problem.rates)
        if problem.decay > 0 and rates[0] != rates[1]:
            raise NoClosedForm(
                f"problem: with decay {problem.decay:.3g} the two factors shrink at the different "
                f"rates {problem.rates[0]:.3g} and {problem.rates[1]:.3g}, and no closed form is "
                "known; call integrate(problem, start, times)"
            )
        eta = float(rates[0] * rates[1])
        posed = Factors(start.U / rates[0], start.V / rates[1])
        size = float(np.hypot(np.linalg.norm(posed.U), np.linalg.norm(posed.V)))
        svd = problem.svd
        left, inner, outer, lost = split_columns(svd.P, posed.U, rounding * size)
        right, other, beyond, missed = split_columns(svd.R, posed.V, rounding * size)
        return cls(
            posed,
            Coordinates(inner, other, outer, beyond),
            settled_values(svd) / eta,
            problem.decay / eta,
            eta**2,
            left,
            right,
            max(lost, missed) / size if size > 0 else 0.0,
            svd.subspaces,
        )

    @property
    def size(self) -> float:
        """The Frobenius norm of [U; V]."""
        return float(np.hypot(np.linalg.norm(self.start.U), np.linalg.norm(self.start.V)))


def settled_values(svd: TargetSVD) -> Array:
    """The singular values, those that are equal to rounding made equal, and those that are 0, 0."""
    values = np.array(svd.s)
    for group in svd.subspaces:
        values[group] = values[group].mean()
    return np.where(values <= svd.rounding, 0.0, values)


def split_columns(
    basis: Array, factor: Array, rounding: float
) -> tuple[Array, Array, Array, float]:
    """A factor's columns in a basis (m, k) and outside it, where what is rounding is left out.

    Returns:
        The basis and an orthonormal one of what is outside it; the coordinates in both; the
        Frobenius norm of what was left out.
    """
    inner = basis.T @ factor
    if len(basis) == basis.shape[1]:
        return basis, inner, np.empty((0, factor.shape[1])), 0.0
    outside = factor - basis @ inner
    outside -= basis @ (basis.T @ outside)
    vectors, sizes, _ = np.linalg.svd(outside, full_matrices=False)
    room = len(basis) - basis.shape[1]
    kept = (sizes > rounding) & (np.arange(len(sizes)) < room)
    # Once more: a short column, now of length 1, may have kept much of the basis.
    beyond = vectors[:, kept] - basis @ (basis.T @ vectors[:, kept])
    beyond = np.linalg.qr(beyond)[0]
    lost = float(np.linalg.norm(sizes[~kept]))
    return np.hstack([basis, beyond]), inner, beyond.T @ outside, lost


@dataclass(frozen=True)
class Balance:
    """How far a start is from UᵀU = VᵀV and from UᵀU − VᵀV = λI, each below 1 always.

    Attributes:
        norm: ‖UᵀU − VᵀV‖_F.
        constant: λ, the mean of the diagonal of UᵀU − VᵀV in the sense of the deviations.
        deviation: From balanced, relative.
        deviation_from_constant: From λ-balanced, relative.
    """

    norm: float
    constant: float
    deviation: float
    deviation_from_constant: float

    @classmethod
    def of(cls, start: Factors, unit: float) -> Balance:
        """Measure a start.

        In the right singular basis of [U; V], with singular values σ, an entry (i, j) of UᵀU − VᵀV
        is known to a few units of ‖[U; V]‖ (σ_i + σ_j), and is counted relative to that: otherwise
        directions that are small beside the others could be as unbalanced as they please.
        """
        stacked = np.vstack([start.U, start.V])
        core = np.linalg.qr(stacked, mode="r")  # has the same values and basis
        _, values, basis = np.linalg.svd(core, full_matrices=False)
        size = float(np.linalg.norm(values))
        if size == 0:
            return cls(0.0, 0.0, 0.0, 0.0)
        if len(values) < stacked.shape[1]:  # more columns than rows: the rest of them is 0
            basis = np.linalg.svd(stacked)[2]
            values = np.append(values, np.zeros(len(basis) - len(values)))
        left, right = start.U @ basis.T, start.V @ basis.T
        gap = left.T @ left - right.T @ right
        scale = size * (values[:, None] + values + unit * size)
        weight = 1 / np.diag(scale) ** 2
        constant = float(np.sum(weight * _diagonal_gap(left, right)) / np.sum(weight))
        uneven = gap - constant * np.eye(len(gap))
        return cls(
            float(np.linalg.norm(gap)),
            constant,
            float((np.abs(gap) / scale).max()),
            float((np.abs(uneven) / scale).max()),
        )


def _diagonal_gap(left: Array, right: Array) -> Array:
    """The diagonal of UᵀU − VᵀV, as exactly as long doubles make it: times multiply its error."""
    squares = [np.sum(np.square(side, dtype=np.longdouble), axis=0) for side in (left, right)]
    return np.asarray(squares[0] - squares[1], np.float64)
