"""Closed forms of the gradient flow U' = −E V, V' = −EᵀU, E = U Vᵀ − target.

Two families of starts have one:

- aligned starts, where the flow falls apart into one pair of numbers for each singular mode
  (ledger M4 and M5) [Saxe, McClelland, Ganguli 2014];
- balanced starts, UᵀU = VᵀV, where it is a matrix Riccati equation (ledger M8) [Fukumizu 1998;
  Braun et al. 2022].

Both are evaluated in forms in which nothing overflows and nothing cancels, at every time: see
`mode_factors` and `_riccati`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from nonmixing.dynamics.trajectory import Trajectory, flow_times
from nonmixing.errors import InputError, NoClosedForm
from nonmixing.problem import Array, BilinearProblem, Factors

ALIGNED_UNITS: Final = 8
"""What counts as rounding when a start is held to be aligned, in units of max(m, n, r) ε ‖[U; V]‖.
An entry of PᵀU, a sum of m products, is off by about one unit; U and P come with errors of their
own. A part of a mode below this is taken as zero, so it must not be larger than it has to be."""

BALANCED_UNITS: Final = 256
"""The same when a start is held to be balanced. Fresh starts are within one unit; states that a
flow has carried have more, as rounding grows with the modes. Nothing larger is let through: the
flow amplifies an imbalance without bound, and it would be neglected silently."""

MOST_HOPS: Final = 100_000
"""The most such evaluations between two times."""

LONGEST_HOP: Final = 300.0
"""The most e-folds of the fastest mode in one evaluation; e^300, squared, is far from overflow."""


def solve(problem: BilinearProblem, start: Factors, times: ArrayLike) -> Trajectory:
    """The exact gradient flow of ½‖U Vᵀ − target‖²_F from an aligned or a balanced start.

    Args:
        problem: The problem, target (m, n).
        start: The state at time 0, U (m, r) and V (n, r), any r.
        times: Shape (K,), increasing, from 0 on.

    Returns:
        A trajectory whose source names the closed form: "exact: M4" (aligned, every a_i² = b_i²),
        "exact: M5" (aligned) or "exact: M8" (balanced). Its factors are one representative, up to
        one rotation on the right: compare U Vᵀ, U Uᵀ and V Vᵀ. Where a_i + b_i or a_i − b_i of an
        aligned start is within rounding of zero it is taken as zero, since the flow would otherwise
        make something of it. In M8 work grows with s₁ t, by one evaluation for each 300.

    Raises:
        NoClosedForm: The start is neither aligned, with the singular vectors of `problem.svd`, nor
            balanced; `integrate` takes it.
        InputError: Times that are negative, do not increase, or are not finite.
        ShapeError: A start that does not fit the target.
    """
    start.check(problem)
    grid = flow_times("times", times)
    state = _coordinates(problem, start)
    unit = float(np.finfo(np.float64).eps) * max(*problem.shape, start.width)
    misalignment, imbalance = _misalignment(state), _imbalance(start, unit)
    if misalignment <= ALIGNED_UNITS * unit:
        states, form = _aligned_flow(problem, state, ALIGNED_UNITS * unit, grid)
    elif imbalance <= BALANCED_UNITS * unit:
        states, form = _balanced_flow(problem, state, grid), "M8"
    else:
        raise NoClosedForm(
            "start: no closed form holds for it: it is not balanced, ‖UᵀU − VᵀV‖_F = "
            f"{np.linalg.norm(start.imbalance):.3g} (relative deviation {imbalance:.2g}, at most "
            f"{BALANCED_UNITS * unit:.1g} is rounding), nor aligned with the target's singular "
            f"modes (relative deviation {misalignment:.2g}, at most {ALIGNED_UNITS * unit:.1g}); "
            "call integrate(problem, start, times)"
        )
    return Trajectory.from_arrays(
        grid,
        *states,
        problem=problem,
        source=f"exact: {form}",
        stats={"imbalance": imbalance, "misalignment": misalignment},
    )


def mode_factors(s: ArrayLike, a: ArrayLike, b: ArrayLike, times: ArrayLike) -> tuple[Array, Array]:
    """The factors of aligned modes: a' = (s − ab) b, b' = (s − ab) a.

    With c = ab and λ = a² − b², which is constant, this is at once

    - M4, λ = 0: c = s / (1 + (s/c₀ − 1) e^{−2st}) for c₀ > 0 and s > 0; the same with e^{+2st} for
      c₀ < 0; c = c₀ / (1 + 2|c₀|t) for s = 0 [the sigmoid of Saxe et al. 2014, who call the mode u
      and keep a time constant τ, which is 1 here];
    - M5, λ ≠ 0: c = |λ| x / (1 − x²) with x' = s − |λ| x − s x², a Möbius function of e^{−Kt},
      K = √(4s² + λ²) [Saxe et al. 2014, their hyperbola, with x = tanh(θ/2); Tarmoun et al. 2021],
      where x is b/a or a/b, whichever is below 1 in size.

    Those expressions lose digits where λ is small or x near 1. In p = (a + b)/√2, q = (a − b)/√2,
    of which p q = λ/2 stays constant, the same solution is a quotient of sums of positive terms:

        p(t) = p₀ √(D/N),   q(t) = q₀ √(N/D),
        N = e^{−Kt} + p₀² h + g²,   D = 1 + q₀² h + g² e^{−Kt},
        h = (1 − e^{−Kt})/σ,   g = |p₀ q₀|/σ,   σ = K/2 + s,

    so it is accurate to rounding in p and q at every time (q/p is a Möbius function of e^{−Kt}).

    Args:
        s: Singular values, shape (k,), not negative.
        a: Shape (k,), at time 0.
        b: Shape (k,), at time 0.
        times: Shape (K,), not negative.

    Returns:
        a(t) and b(t), each of shape (K, k).
    """
    value, t = np.asarray(s, np.float64), np.asarray(times, np.float64)[:, None]
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    p, q = (first + second) / np.sqrt(2), (first - second) / np.sqrt(2)
    half_rate = np.hypot(value, p * q)
    sigma = half_rate + value
    moving = sigma > 0
    safe = np.where(moving, sigma, 1.0)
    g = np.where(moving, np.abs(p * q) / safe, 0.0)
    h = t * np.where(moving, 2 * half_rate / safe, 1.0) * _decay_mean(2 * half_rate * t)
    decay, root = np.exp(-half_rate * t), np.sqrt(h)
    numerator = np.hypot(np.hypot(decay, p * root), g)
    denominator = np.hypot(np.hypot(1.0, q * root), g * decay)
    # Where e^{-Kt} underflows and p = 0 the numerator is 0, and p stays 0.
    p_t = p * denominator / np.where(numerator > 0, numerator, 1.0)
    q_t = q * numerator / denominator
    return (p_t + q_t) / np.sqrt(2), (p_t - q_t) / np.sqrt(2)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Factors in the target's singular bases and their orthonormal complements."""

    left: Array  # PᵀU (k, r)
    right: Array  # RᵀV (k, r)
    left_basis: Array  # (m, m − k), the complement of P
    left_rest: Array  # U's coordinates there (m − k, r)
    right_basis: Array  # (n, n − k), the complement of R
    right_rest: Array  # V's coordinates there (n − k, r)

    @property
    def size(self) -> float:
        """The Frobenius norm of [U; V]."""
        parts = (self.left, self.right, self.left_rest, self.right_rest)
        return float(np.linalg.norm([np.linalg.norm(part) for part in parts]))


def _coordinates(problem: BilinearProblem, start: Factors) -> _Coordinates:
    svd = problem.svd
    left_basis, right_basis = _complement(svd.P), _complement(svd.R)
    return _Coordinates(
        svd.P.T @ start.U,
        svd.R.T @ start.V,
        left_basis,
        left_basis.T @ start.U,
        right_basis,
        right_basis.T @ start.V,
    )


def _complement(basis: Array) -> Array:
    """An orthonormal basis (m, m − k) of what is orthogonal to the columns of (m, k)."""
    q, _ = linalg.qr(basis)
    return np.asarray(q[:, basis.shape[1] :], np.float64)


def _directions(state: _Coordinates) -> tuple[Array, Array]:
    """The unit vectors (k, r) along the longer of a mode's rows in PᵀU and RᵀV, and its length."""
    left, right = np.linalg.norm(state.left, axis=1), np.linalg.norm(state.right, axis=1)
    longer = np.where((left >= right)[:, None], state.left, state.right)
    lengths = np.maximum(left, right)
    return longer / np.where(lengths > 0, lengths, 1.0)[:, None], lengths


def _misalignment(state: _Coordinates) -> float:
    """How far a start is from U = P diag(a) Oᵀ, V = R diag(b) Oᵀ; 0 for aligned, below 1 always.

    The largest of: what lies outside P and R, what a mode's two rows have across each other, and
    the overlap o_i · o_j of two modes. Each is relative to the whole, and the overlap counts with
    the length of the shorter of the two, so that rounding of U and V alone makes a few units of it.
    """
    size = state.size
    if size == 0:
        return 0.0
    frame, lengths = _directions(state)
    across = [
        rows - np.sum(rows * frame, axis=1, keepdims=True) * frame
        for rows in (state.left, state.right)
    ]
    stray = [float(np.linalg.norm(part)) for part in (*across, state.left_rest, state.right_rest)]
    total = lengths[:, None] + lengths
    shorter = np.outer(lengths, lengths) / np.where(total > 0, total, 1.0)
    overlap = np.abs(frame @ frame.T) * shorter
    np.fill_diagonal(overlap, 0.0)
    return max(*stray, float(overlap.max())) / size


def _imbalance(start: Factors, unit: float) -> float:
    """How far a start is from UᵀU = VᵀV; 0 for balanced, below 1 always.

    In the right singular basis of [U; V], with singular values σ, an entry (i, j) of UᵀU − VᵀV is
    known to a few units of ‖[U; V]‖ (σ_i + σ_j), and is counted relative to that: otherwise
    directions that are small beside the others could be as unbalanced as they please.
    """
    _, values, basis = np.linalg.svd(np.vstack([start.U, start.V]), full_matrices=False)
    size = float(np.linalg.norm(values))
    if size == 0:
        return 0.0
    left, right = start.U @ basis.T, start.V @ basis.T
    scale = size * (values[:, None] + values + unit * size)
    return float((np.abs(left.T @ left - right.T @ right) / scale).max())


def _aligned_flow(
    problem: BilinearProblem, state: _Coordinates, rounding: float, times: Array
) -> tuple[tuple[Array, Array], str]:
    """U (K, m, r) and V (K, n, r) from an aligned start, and the closed form's name."""
    frame, _ = _directions(state)
    a, b = np.sum(state.left * frame, axis=1), np.sum(state.right * frame, axis=1)
    p, q = a + b, a - b
    lost = rounding * state.size
    p, q = np.where(np.abs(p) > lost, p, 0.0), np.where(np.abs(q) > lost, q, 0.0)
    a_t, b_t = mode_factors(problem.svd.s, (p + q) / 2, (p - q) / 2, times)
    U = (problem.svd.P * a_t[:, None, :]) @ frame
    V = (problem.svd.R * b_t[:, None, :]) @ frame
    return (U, V), "M5" if np.any((p != 0) & (q != 0)) else "M4"


def _balanced_flow(
    problem: BilinearProblem, state: _Coordinates, times: Array
) -> tuple[Array, Array]:
    """U (K, m, r) and V (K, n, r) from a balanced start.

    With Z = [U; V] and F = [[0, target], [targetᵀ, 0]], a balanced start has Z' = F Z − ½ Z ZᵀZ, so
    that X = Z Zᵀ solves X' = F X + X F − X² [Fukumizu 1998; Braun et al. 2022, where Q = [W₁ᵀ; W₂]
    is our Z with U = W₂ and V = W₁ᵀ in the other order, and a time constant is kept]. F has the
    eigenvectors (p_i, ±r_i)/√2 with eigenvalues ±s_i, and the complements of P and R with
    eigenvalue 0.
    """
    root, values = np.sqrt(2), problem.svd.s
    k, above = len(values), len(state.left_rest)
    rates = np.concatenate([values, -values, np.zeros(above + len(state.right_rest))])
    rows = np.vstack(
        [
            (state.left + state.right) / root,
            (state.left - state.right) / root,
            state.left_rest,
            state.right_rest,
        ]
    )
    longest = LONGEST_HOP / values[0] if values[0] > 0 else np.inf
    if times[-1] > MOST_HOPS * longest:
        raise InputError(
            f"times: the last is {times[-1]:.3g}, which takes over {MOST_HOPS} evaluations for "
            f"this target; end at {MOST_HOPS * longest:.3g} or before"
        )
    U = np.empty((len(times), problem.shape[0], rows.shape[1]))
    V = np.empty((len(times), problem.shape[1], rows.shape[1]))
    since = 0.0
    for index, time in enumerate(times):
        while time - since > longest:
            rows, since = _riccati(rates, rows, longest), since + longest
        now = _riccati(rates, rows, float(time - since))
        plus, minus = now[:k], now[k : 2 * k]
        left_rest, right_rest = now[2 * k : 2 * k + above], now[2 * k + above :]
        U[index] = problem.svd.P @ ((plus + minus) / root) + state.left_basis @ left_rest
        V[index] = problem.svd.R @ ((plus - minus) / root) + state.right_basis @ right_rest
    return U, V


def _riccati(rates: Array, rows: Array, time: float) -> Array:
    """Z(t) with Z Zᵀ = X(t), X' = Λ X + X Λ − X², Λ = diag(rates), from Z₀ = `rows`.

    The solution is X(t) = e^{Λt} Z₀ M⁻¹ Z₀ᵀ e^{Λt}, M = I + Z₀ᵀ W Z₀, W = ∫₀ᵗ e^{2Λs} ds. As it
    stands this loses digits once e^{2Λt} is large, and M is soon singular in floating point. Here
    M = AᵀA is never formed. With A = [W^½ Z₀; I] = Q R, Q = [Q₁; Q₂],

        Z(t) = e^{Λt} Z₀ R⁻¹ = (e^{Λt} W^{−½}) Q₁,

    where e^{Λt} W^{−½} is bounded: nothing large is left, nothing is solved for, and nothing
    cancels. The rows of A differ by as much as e^{s₁ t}; Householder's method keeps each to its own
    relative accuracy when the rows are sorted by size and the columns pivoted [Powell and Reid
    1969; Cox and Higham 1998]. The result is then turned to e^{Λt} Z₀ M^{−½}, which goes over into
    Z₀ as t → 0; any other square root of M⁻¹ would do as well.
    """
    if time == 0:
        return rows
    weight = np.sqrt(time * _decay_mean(2 * np.abs(rates) * time))
    tall = rows * (weight * np.exp(np.maximum(rates, 0) * time))[:, None]
    stack = np.vstack([tall, np.eye(rows.shape[1])])
    order = np.argsort(-np.abs(stack).max(axis=1), kind="stable")
    sorted_q, triangle, pivot = linalg.qr(stack[order], mode="economic", pivoting=True)
    q, unpivoted = np.empty_like(sorted_q), np.empty_like(triangle)
    q[order], unpivoted[:, pivot] = sorted_q, triangle
    left, _, right = np.linalg.svd(unpivoted)
    shrink = np.exp(np.minimum(rates, 0) * time) / weight
    return (q[: len(rows)] * shrink[:, None]) @ (left @ right)


def _decay_mean(x: Array) -> Array:
    """(1 − e^{−x})/x for x ≥ 0, which is 1 at 0."""
    return np.where(x > 0, -np.expm1(-x) / np.where(x > 0, x, 1.0), 1.0)
