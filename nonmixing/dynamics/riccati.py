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

from nonmixing.dynamics.graded import Graded
from nonmixing.dynamics.mode_laws import integrated_decay
from nonmixing.problem import Array

SHORT: Final = 1e4
"""t ‖Z₀‖² up to which ordinary QR and its inverse lose no more than two digits."""

MILD: Final = 1.0
"""Trace up to which I plus a Gram matrix has a condition of at most 2, so that nothing is lost by
forming it."""


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

    @cached_property
    def others(self) -> NDArray[np.intp]:
        """The rows whose rate is not positive."""
        return np.flatnonzero(self.rates <= 0)

    def graded(self, rows: Array) -> Graded:
        """The growing ones of a state's rows (N, r), to be scaled by their growth."""
        growing = self.growing
        return Graded(
            self.rates[growing], self.kappa[growing], self._values[growing], rows[growing]
        )

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


def evolve(
    spectrum: Spectrum, start: Coordinates, times: Array, frame: Array
) -> tuple[Array, Array]:
    """The states at `times` (K,); infinity gives the limit.

    They are one representative for all times, turned on the right to be nearest to the start's own
    directions. It moves continuously, since Z(t)ᵀ Z₀ = M^{−½} Z₀ᵀ e^{Ft} Z₀ is invertible, and is
    the start at t = 0.

    Args:
        spectrum: F's.
        start: The state at t = 0, of full column rank r.
        times: Shape (K,).
        frame: Shape (r, r'), by which every state is multiplied at last.

    Returns:
        U's coordinates in P and outside it, shape (K, ·, r'), and V's.
    """
    rows = spectrum.rows(start)
    left, _, right = np.linalg.svd(start.stacked, full_matrices=False)
    anchor, modes = left @ right, len(spectrum.s)
    growing = spectrum.graded(rows)
    U, V = (np.empty((len(times), modes + rest, frame.shape[1])) for rest in spectrum.rests)
    for index, time in enumerate(float(t) for t in times):
        if time == 0:
            now = start
        elif _is_early(spectrum, rows, time):
            now = _early(spectrum, start, rows, time)
        else:
            now = spectrum.state(late(spectrum, rows, growing, time))
        turn, _, other = np.linalg.svd(now.stacked.T @ anchor)
        final = turn @ other @ frame
        np.matmul(now.left, final, out=U[index, :modes])
        np.matmul(now.left_rest, final, out=U[index, modes:])
        np.matmul(now.right, final, out=V[index, :modes])
        np.matmul(now.right_rest, final, out=V[index, modes:])
    return U, V


def _is_early(spectrum: Spectrum, rows: Array, time: float) -> bool:
    """Whether, for λ ≠ 0, V may be a small difference in the eigenbasis, and M is well behaved."""
    if spectrum.imbalance == 0:
        return False
    return time * max(float(spectrum.kappa.max()), float(np.sum(rows**2)) / SHORT) <= 1


def _early(spectrum: Spectrum, start: Coordinates, rows: Array, time: float) -> Coordinates:
    """e^{Ft} Z₀ R⁻¹ with RᵀR = M, while M is well conditioned.

    In the eigenbasis V is a difference there if it is much smaller than U, for λ ≠ 0 early on.
    """
    grown = np.exp(np.maximum(spectrum.rates, 0) * time)
    weight = np.sqrt(integrated_decay(2 * np.abs(spectrum.rates), time)) * grown
    triangle = _triangle(rows * weight[:, None])
    pushed = spectrum.pushed(start, time).parts
    return Coordinates(*(_over(part, triangle) for part in pushed))


def late(spectrum: Spectrum, rows: Array, growing: Graded, time: float) -> Array:
    """Z(t) with Z Zᵀ = X(t), from the rows Z₀ (N, r) in the eigenbasis, rates Λ, 0 < t ≤ ∞.

    The solution is X(t) = e^{Λt} Z₀ M⁻¹ Z₀ᵀ e^{Λt}, M = I + Z₀ᵀ W Z₀, W = ∫₀ᵗ e^{2Λu} du. As it
    stands this loses digits once e^{2Λt} is large, and M is soon singular in floating point. Here
    M = AᵀA is never formed. Of the rows that do not grow, N₀ with the bounded weights W₀, the
    triangle C with CᵀC = I + N₀ᵀ W₀ N₀ is all that M needs, so that A = [W₁^½ Z₁; C] with the rows
    Z₁ that grow. With the basis B = [B₁; B₀] of A's range from `graded`, A = B U, and BᵀB = RᵀR,

        Z(t) = (e^{Λt} W^{−½})₁ B₁ R⁻¹  for the growing rows, where e^{Λt} W^{−½} is bounded,
        Z(t) = e^{Λ₀t} N₀ C⁻¹ B₀ R⁻¹    for the others.
    """
    count, ends = len(spectrum.growing), bool(np.isinf(time))
    rates = spectrum.rates[spectrum.others]
    # At t = ∞ nothing is left of what does not grow.
    mean = np.zeros(len(rates)) if ends else integrated_decay(-2 * rates, time)
    core = _triangle(rows[spectrum.others] * np.sqrt(mean)[:, None])
    weights = np.sqrt(integrated_decay(2 * growing.rates, time))
    basis = growing.basis(weights, core, time)
    triangle = np.asarray(np.linalg.qr(basis, mode="r"), np.float64)
    spread = _over(basis, triangle)
    found = np.empty(rows.shape)
    found[spectrum.growing] = spread[:count] / weights[:, None]
    if ends:
        found[spectrum.others] = 0.0
    else:
        bounded = _over(rows[spectrum.others], core) @ spread[count:]
        found[spectrum.others] = bounded * np.exp(rates * time)[:, None]
    return found


def _triangle(tall: Array) -> Array:
    """The upper triangle C (r, r) with CᵀC = I + tallᵀ tall."""
    gram = tall.T @ tall
    if np.trace(gram) <= MILD:
        return np.asarray(np.linalg.cholesky(np.eye(len(gram)) + gram), np.float64).T
    stack = np.concatenate([tall, np.eye(tall.shape[1])])
    return np.asarray(np.linalg.qr(stack, mode="r"), np.float64)


def _over(rows: Array, triangle: Array) -> Array:
    """Rows times the inverse of an upper triangle."""
    return solve_triangular(triangle, rows.T, trans="T", check_finite=False).T
