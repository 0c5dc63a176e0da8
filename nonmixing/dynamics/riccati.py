"""Balanced and λ-balanced starts: the matrix Riccati equation X' = F X + X F − X² (M8, M9).

With Z = [U; V] and UᵀU − VᵀV = λI the flow is Z' = F Z − ½ Z ZᵀZ,

    F = [[λ/2 I, Q*], [Q*ᵀ, −λ/2 I]] − d I,

so that X = Z Zᵀ solves the equation above [Fukumizu 1998 for λ = 0; Braun et al. 2022, where
Q = [W₁ᵀ; W₂] is our Z with U = W₂ and V = W₁ᵀ in the other order; Dominé et al. 2025 for λ ≠ 0,
with their λ = our −λ; both keep a time constant, 1 here]. A weight decay d shifts F as long as
λ = 0; with λ ≠ 0 it would make λ move.

F falls apart over the target's modes: [[λ/2, s_i], [s_i, −λ/2]] has the eigenvalues ±κ_i,
κ_i = √(s_i² + λ²/4), and what is outside P (outside R) has λ/2 (−λ/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from nonmixing.dynamics.mode_laws import integrated_decay
from nonmixing.problem import Array

APART: Final = 1e4
"""The spread in sizes of the orders of pivots at t = ∞, beyond any logarithm of a float's size."""

LARGEST: Final = float(np.log(np.finfo(np.float64).max))
"""The largest exponent of a float."""

SHORT: Final = 1e4
"""t ‖Z₀‖² up to which ordinary QR and its inverse lose no more than two digits."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A state in the target's singular bases, and what is outside them.

    Attributes:
        left: PᵀU, shape (k, r).
        right: RᵀV, shape (k, r).
        left_rest: U's coordinates outside P, shape (·, r).
        right_rest: V's coordinates outside R, shape (·, r).
    """

    left: Array
    right: Array
    left_rest: Array
    right_rest: Array

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        """The fields, in order."""
        return self.left, self.right, self.left_rest, self.right_rest

    @cached_property
    def stacked(self) -> Array:
        """All the rows, in the order of the fields."""
        return np.concatenate(self.parts, axis=-2)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues and eigenvectors of F, one row of a state for each.

    The rows are those of F's eigenbasis: growing (k), falling (k), left rest, right rest.

    Attributes:
        s: Singular values, shape (k,).
        imbalance: λ.
        decay: d; 0 where λ is not.
        rests: How many rows are outside P, and outside R.
    """

    s: Array
    imbalance: float
    decay: float
    rests: tuple[int, int]

    @cached_property
    def kappa(self) -> Array:
        """√(s² + λ²/4) of each row; |λ|/2 outside P and R."""
        modes = np.hypot(self.s, self.imbalance / 2)
        return np.concatenate([modes, modes, np.full(sum(self.rests), abs(self.imbalance) / 2)])

    @cached_property
    def rates(self) -> Array:
        """F's eigenvalues."""
        k, sign = len(self.s), np.sign(self.imbalance)
        signs = np.repeat([1.0, -1.0, sign, -sign], [k, k, *self.rests])
        return signs * self.kappa - self.decay

    @cached_property
    def _values(self) -> Array:
        """The singular value of each row."""
        return np.concatenate([self.s, self.s, np.zeros(sum(self.rests))])

    @cached_property
    def growing(self) -> NDArray[np.intp]:
        """The rows whose rate is positive."""
        return np.flatnonzero(self.rates > 0)

    def lead(self, row: int) -> Array:
        """How much faster each of the growing rows grows than one of them.

        Differences of two κ are taken through s² − s'², so that close rates do not cancel.
        """
        kappa, values = self.kappa[self.growing], self._values[self.growing]
        apart = (values - self._values[row]) * (values + self._values[row])
        return apart / (kappa + self.kappa[row])

    @cached_property
    def _angle(self) -> tuple[Array, Array]:
        """The growing eigenvector (cos θ, sin θ), tan 2θ = 2s/λ, shapes (k, 1)."""
        half, kappa = abs(self.imbalance) / 2, self.kappa[: len(self.s)]
        safe = np.where(kappa > 0, kappa, 1.0)
        larger = np.where(kappa > 0, np.sqrt((kappa + half) / (2 * safe)), np.sqrt(0.5))
        smaller = np.where(kappa > 0, self.s / (2 * safe * larger), np.sqrt(0.5))
        pair = (larger, smaller) if self.imbalance >= 0 else (smaller, larger)
        return pair[0][:, None], pair[1][:, None]

    def rows(self, state: Coordinates) -> Array:
        """A state in the eigenbasis."""
        c, s = self._angle
        growing, falling = c * state.left + s * state.right, c * state.right - s * state.left
        return np.vstack([growing, falling, state.left_rest, state.right_rest])

    def state(self, rows: Array) -> Coordinates:
        """The other way; rows of shape (..., N, r)."""
        (c, s), k = self._angle, len(self.s)
        growing, falling = rows[..., :k, :], rows[..., k : 2 * k, :]
        left, right = c * growing - s * falling, s * growing + c * falling
        cut = 2 * k + self.rests[0]
        return Coordinates(left, right, rows[..., 2 * k : cut, :], rows[..., cut:, :])

    def pushed(self, state: Coordinates, time: float) -> Coordinates:
        """e^{Ft} of a state for κt ≤ 1, d = 0; nothing cancels but the state's own signs."""
        k, half = len(self.s), self.imbalance / 2
        kappa = self.kappa[:k, None]
        rise = np.where(kappa > 0, np.sinh(kappa * time) / np.where(kappa > 0, kappa, 1.0), time)
        level, cross = np.cosh(kappa * time), self.s[:, None] * rise
        return Coordinates(
            (level + half * rise) * state.left + cross * state.right,
            cross * state.left + (level - half * rise) * state.right,
            np.exp(half * time) * state.left_rest,
            np.exp(-half * time) * state.right_rest,
        )


def evolve(spectrum: Spectrum, start: Coordinates, times: Array) -> Coordinates:
    """The states at `times` (K,), each field of shape (K, ·, r); infinity gives the limit.

    They are one representative for all times, turned on the right to be nearest to the start's own
    directions. It moves continuously, since Z(t)ᵀ Z₀ = M^{−½} Z₀ᵀ e^{Ft} Z₀ is invertible, and is
    the start at t = 0.
    """
    rows = spectrum.rows(start)
    left, _, right = np.linalg.svd(start.stacked, full_matrices=False)
    anchor = left @ right
    short = spectrum.imbalance != 0
    parts = [np.empty((len(times), *part.shape)) for part in start.parts]
    for index, time in enumerate(float(t) for t in times):
        if time == 0:
            now = start
        elif short and time * max(spectrum.kappa.max(), np.sum(rows**2) / SHORT) <= 1:
            now = _early(spectrum, start, rows, time)
        else:
            now = spectrum.state(late(spectrum, rows, time))
        turn, _, other = np.linalg.svd(now.stacked.T @ anchor)
        for part, field in zip(parts, now.parts, strict=True):
            np.matmul(field, turn @ other, out=part[index])
    return Coordinates(*parts)


def _early(spectrum: Spectrum, start: Coordinates, rows: Array, time: float) -> Coordinates:
    """e^{Ft} Z₀ R⁻¹ with RᵀR = M, while M is well conditioned.

    In the eigenbasis V is a difference there if it is much smaller than U, for λ ≠ 0 early on.
    """
    grown = np.exp(np.maximum(spectrum.rates, 0) * time)
    weight = np.sqrt(integrated_decay(2 * np.abs(spectrum.rates), time)) * grown
    stack = np.vstack([rows * weight[:, None], np.eye(rows.shape[1])])
    triangle = _triangle(stack)
    pushed = spectrum.pushed(start, time).parts
    return Coordinates(*(_over(part, triangle) for part in pushed))


def late(spectrum: Spectrum, rows: Array, time: float) -> Array:
    """Z(t) with Z Zᵀ = X(t), from the rows Z₀ (N, r) in the eigenbasis, rates Λ, 0 < t ≤ ∞.

    The solution is X(t) = e^{Λt} Z₀ M⁻¹ Z₀ᵀ e^{Λt}, M = I + Z₀ᵀ W Z₀, W = ∫₀ᵗ e^{2Λs} ds. As it
    stands this loses digits once e^{2Λt} is large, and M is soon singular in floating point. Here
    M = AᵀA, A = [W^½ Z₀; I], is never formed. With any basis B of A's range,

        X(t) = (e^{Λt} W^{−½}) B (BᵀB)⁻¹ Bᵀ (e^{Λt} W^{−½}), upper rows of B alone,

    where e^{Λt} W^{−½} is bounded. B is the unit trapezoidal factor of Gaussian elimination with
    complete pivoting, A = B U. Its entries are at most 1, and are known without the rows' sizes
    e^{λ_i t}, which no float holds: b_ij = (ratio of the rows without them) e^{(λ_i − λ_j)t}. Each
    row is accurate to its own size, as pivots by size keep it [Cox and Higham 1998 for the QR
    factorisation], and B is well conditioned however far apart the sizes are.
    """
    rates, width = spectrum.rates, rows.shape[1]
    mean = integrated_decay(2 * np.abs(rates), time)
    falling = rates < 0
    fall = np.exp(np.where(falling, rates, 0.0) * np.where(falling, time, 0.0))
    shrink = fall / np.sqrt(mean)
    if np.isinf(time):
        # Of what does not grow nothing is left, and it is no pivot before what does.
        mean, shrink = np.where(rates > 0, mean, 0.0), np.where(rates > 0, shrink, 0.0)
    stack = np.hstack([(rows * np.sqrt(mean)[:, None]).T, np.eye(width)])
    basis = _trapezoid(spectrum, stack, time)
    triangle = _triangle(basis)
    return _over(basis[: len(rows)], triangle) * shrink[:, None]


def _trapezoid(spectrum: Spectrum, columns: Array, time: float) -> Array:
    """The unit trapezoidal factor (N + r, r) of A; `columns` (r, N + r) is Aᵀ without e^{λ_i t}.

    Columns of A are interchanged in place; those of the factor are a basis in any order.
    """
    width, count = columns.shape
    order, basis = _order(spectrum, count, time), np.empty((width, count))
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
        basis[step] = ratios
        _scale(spectrum, basis[step], pivot, time)
    return basis.T


def _order(spectrum: Spectrum, count: int, time: float) -> Array:
    """The logarithms of the sizes that A's rows get from e^{λ_i t}, up to a monotone map at ∞."""
    order, growing = np.zeros(count), spectrum.growing
    if np.isinf(time):
        order[growing] = APART * (1 + np.unique(spectrum.rates[growing], return_inverse=True)[1])
    else:
        order[growing] = spectrum.rates[growing] * time
    return order


def _scale(spectrum: Spectrum, ratios: Array, pivot: int, time: float) -> None:
    """Multiply by e^{(g_i − g_p) t}, in place; g is a row's rate where that is positive, else 0.

    A row ahead of the pivot is used up, or in the span of those that are: its ratio is 0, or so
    small that the product is at most 1.
    """
    rates, growing = spectrum.rates, spectrum.growing
    if pivot < len(rates) and rates[pivot] > 0:
        lead, fall = spectrum.lead(pivot), np.exp(-rates[pivot] * time)
        ahead = ratios[growing]
        ratios *= fall
    else:
        lead, ahead = rates[growing], ratios[growing]
    exponent = np.where(lead == 0, 0.0, lead) * np.where(lead == 0, 0.0, time)
    ratios[growing] = ahead * np.exp(np.minimum(exponent, LARGEST))


def _triangle(tall: Array) -> Array:
    """R of a QR factorisation, shape (r, r)."""
    return np.asarray(np.linalg.qr(tall, mode="r"), np.float64)


def _over(rows: Array, triangle: Array) -> Array:
    """Rows times the inverse of an upper triangle."""
    return solve_triangular(triangle, rows.T, trans="T", check_finite=False).T
