"""The closed forms: against mpmath, against SciPy, and by the laws that any solution obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from nonmixing.dynamics.exact import mode_factors, solve
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, NoClosedForm, ShapeError
from nonmixing.problem import (
    Array,
    BilinearProblem,
    Factors,
    aligned,
    balanced,
    gaussian,
    orthonormal,
)

ROUNDING = 1e-13
"""A few hundred units of rounding: products of at most eight terms, three in a row, and their
amplification by the problem's own condition."""


def state(trajectory: Trajectory, k: int) -> Array:
    """X = [U; V][U; V]ᵀ, which no rotation on the right changes."""
    factors = trajectory.factors(k)
    stacked = np.vstack([factors.U, factors.V])
    return stacked @ stacked.T


def distance(got: Array, expected: Array) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def random_target(m: int, n: int, seed: int) -> Array:
    return np.random.default_rng([seed, m, n]).standard_normal((m, n))


# --- one mode: M4 and M5 against their formulas in mpmath, with 60 digits ---------------------


def m4(s: Any, c: Any, t: Any) -> Any:
    """CLAIMS M4, literally."""
    if c == 0:
        return mp.mpf(0)
    if s == 0:
        return c / (1 + 2 * abs(c) * t)
    return s / (1 + (s / c - 1) * mp.exp(-2 * s * t * mp.sign(c)))


def m5(s: Any, a: Any, b: Any, t: Any) -> Any:
    """CLAIMS M5, literally: x follows x' = s − |λ| x − s x² from root to root."""
    rate = abs(a**2 - b**2)
    x = b / a if abs(a) > abs(b) else a / b
    if s == 0:
        x_t = x * mp.exp(-rate * t)
    else:
        k = mp.sqrt(4 * s**2 + rate**2)
        upper, lower = (-rate + k) / (2 * s), (-rate - k) / (2 * s)
        share = (x - upper) / (x - lower) * mp.exp(-k * t)
        x_t = (upper - share * lower) / (1 - share)
    return rate * x_t / (1 - x_t**2)


MODES = [
    (s, a, b)
    for s in (0.0, 1e-3, 0.7, 5.0)
    for a, b in [
        (0.3, 0.3),
        (1e-6, 1e-6),
        (2.0, 2.0),
        (0.5, -0.5),
        (1e-4, -1e-4),
        (0.0, 0.0),
        (0.5, 0.2),
        (-0.5, 0.2),
        (0.2, 0.5),
        (0.1, -3.0),
        (0.4, 0.0),
        (1e-5, 0.9),
        (1.0, 1.0 + 2e-16),
        (1.0, 1.0 + 1e-9),
        (1.0, -1.0 - 1e-9),
    ]
]


def mode_error(formula: Callable[..., tuple[Array, Array]], s: float, a: float, b: float) -> float:
    """The largest relative error of a formula for c = ab over the times 0 to 60, against mpmath."""
    times = np.array([0.0, 1e-3, 0.3, 1.0, 4.0, 15.0, 60.0])
    left, right = formula([s], [a], [b], times)
    worst = 0.0
    with mp.workdps(60 + int(1.74 * 60 * 5)):
        s_, a_, b_ = mp.mpf(s), mp.mpf(a), mp.mpf(b)
        for t, got_a, got_b in zip(times, left[:, 0], right[:, 0], strict=True):
            even = abs(a_) == abs(b_)
            exact = m4(s_, a_ * b_, mp.mpf(t)) if even else m5(s_, a_, b_, mp.mpf(t))
            # c passes through 0 on its way from below; there p² and q² are what is accurate.
            size = abs(exact) + abs(a_**2 - b_**2)
            error = abs(mp.mpf(float(got_a)) * mp.mpf(float(got_b)) - exact)
            worst = max(worst, float(error / size) if size else float(error))
    return worst


@pytest.mark.parametrize(("s", "a", "b"), MODES)
def test_a_mode_follows_m4_and_m5(s: float, a: float, b: float) -> None:
    # K t enters as an exponent: its own rounding, 300 units at K t = 600, comes out relative.
    assert mode_error(mode_factors, s, a, b) <= ROUNDING


def test_a_wrong_rate_does_not_follow_m4_or_m5() -> None:
    """The same measure turns down the clock of M4 without its 2, and one off by a percent."""
    for factor, (s, a, b) in product((0.5, 1.01), [(0.7, 0.3, 0.3), (0.7, 0.5, 0.2)]):

        def wrong(s_: Array, a_: Array, b_: Array, t: Array, by: float = factor) -> object:
            return mode_factors(s_, a_, b_, by * t)

        assert mode_error(wrong, s, a, b) > 1e-4  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("s", "a", "b"), [(1.3, 0.2, 0.7), (0.8, -0.6, 0.5), (0.0, 0.9, 0.4)])
def test_a_mode_solves_its_own_equation(s: float, a: float, b: float) -> None:
    """Against mpmath's Taylor integration of a' = (s − ab) b, b' = (s − ab) a: signs too."""
    with mp.workdps(30):
        flow = mp.odefun(
            lambda _, y: [(s - y[0] * y[1]) * y[1], (s - y[0] * y[1]) * y[0]], 0, [a, b]
        )
        for t in (0.5, 2.0):
            left, right = mode_factors([s], [a], [b], [t])
            expected = [float(x) for x in flow(t)]
            np.testing.assert_allclose([left[0, 0], right[0, 0]], expected, rtol=ROUNDING)


def test_a_mode_on_the_way_into_the_saddle_stays_on_it() -> None:
    """M7: a = −b flows into 0; the other modes move, and rounding does not make it escape."""
    problem = BilinearProblem(random_target(4, 3, 0))
    start = aligned(problem, [0.5, 0.3, 0.0], [0.5, -0.3, 0.0], seed=1)
    found = solve(problem, start, [0.0, 200.0])
    s = problem.svd.s
    np.testing.assert_allclose(found.modes()[0], [0.25, -0.09, 0.0], atol=1e-15)
    np.testing.assert_allclose(found.modes()[1], [s[0], 0.0, 0.0], atol=1e-14)
    assert found.source == "exact: M4"


def test_an_imbalance_however_small_escapes_from_the_saddle() -> None:
    """M7, the other half; 1e-13 is above what counts as rounding, if not by much."""
    problem = BilinearProblem(np.diag([1.0, 0.5]))
    found = solve(problem, aligned(problem, [0.3, 0.3], [0.3, -0.3 - 1e-13]), [0.0, 200.0])
    np.testing.assert_allclose(found.modes()[1], [1.0, 0.5], atol=1e-14)
    assert found.source == "exact: M5"


# --- balanced starts: M8 against its own formula in mpmath -------------------------------------


def riccati_reference(target: Array, start: Factors, time: float) -> Array:
    """X(t) of CLAIMS M8, literally, by mpmath's matrix exponential."""
    m, n = target.shape
    size, s1 = m + n, float(np.linalg.norm(target, 2))
    with mp.workdps(int(60 + 1.74 * time * s1)):
        block = mp.zeros(2 * size)  # exp(t [[−F, I], [0, F]]) holds e^{Ft} and the integral
        for i in range(size):
            block[i, size + i] = 1
        for i, j in product(range(m), range(n)):
            for row, column in ((i, m + j), (m + j, i)):
                block[row, column] = -mp.mpf(float(target[i, j]))
                block[size + row, size + column] = mp.mpf(float(target[i, j]))
        exponential = mp.expm(block * mp.mpf(time))
        forward = exponential[size:, size:]
        integral = forward * exponential[:size, size:]  # ∫₀ᵗ e^{2Fs} ds
        z = mp.matrix(np.vstack([start.U, start.V]).tolist())
        inner = (mp.eye(start.width) + z.T * integral * z) ** -1
        x = forward * z * inner * z.T * forward.T
        return np.array([[float(x[i, j]) for j in range(size)] for i in range(size)])


BALANCED = {
    "square": (random_target(3, 3, 1), 3, 1e-2),
    "wide": (random_target(2, 4, 2), 2, 1e-3),
    "tall": (random_target(4, 2, 3), 3, 0.5),
    "narrow": (random_target(3, 3, 4), 1, 1e-3),
    "overfull": (random_target(2, 3, 5), 6, 0.3),
    "one by one": (np.array([[1.5]]), 1, 0.1),
    "below the rank": (random_target(3, 4, 6), 2, 1e-6),
    "rank one": (np.outer([1.0, 2.0, -1.0], [0.5, 1.0]), 2, 0.1),
    "equal values": (np.diag([2.0, 2.0, 1.0]), 2, 1e-2),
    "no target": (np.zeros((3, 2)), 2, 0.7),
    "large start": (random_target(2, 2, 7), 2, 10.0),
}


@pytest.mark.parametrize("case", BALANCED)
def test_a_balanced_start_follows_m8(case: str) -> None:
    target, width, scale = BALANCED[case]
    problem = BilinearProblem(target)
    start = balanced(problem, scale=scale, width=width, seed=1)
    times = [0.0, 0.2, 2.0, 6.0, 14.0]
    found = solve(problem, start, times)
    for k, t in enumerate(times):
        assert distance(state(found, k), riccati_reference(target, start, t)) <= ROUNDING
    assert found.source == ("exact: M4" if case == "one by one" else "exact: M8")


def test_each_row_is_accurate_to_its_own_size() -> None:
    """Modes from 1e-9 to 1, the fastest the smallest, so that they cross on a huge scale.

    With U = V on a symmetric target the rows of U are those of the eigenbasis. The columns are
    mixed by a general matrix, so that the modes compete; the entry (i, j) of U Uᵀ is held against
    the lengths of the two rows, not against the largest.
    """
    problem = BilinearProblem(np.diag([2.0, 1.8, 1.0]))
    rows = random_target(3, 2, 21) * np.array([[1e-9], [1.0], [1e-3]])
    start, times = Factors(rows, rows), [0.5, 8.0, 13.0, 40.0]
    found = solve(problem, start, times)
    assert found.source == "exact: M8"
    for k, t in enumerate(times):
        expected = riccati_reference(problem.target, start, t)[:3, :3]
        lengths = np.sqrt(np.diag(expected))
        left = found.factors(k).U
        error = np.abs(left @ left.T - expected) / np.outer(lengths, lengths)
        assert error.max() <= ROUNDING


def test_a_wrong_integral_does_not_follow_m8() -> None:
    """The measure above turns down e^{Fs} under the integral, which agrees at t = 0 only."""
    target, width, scale = BALANCED["square"]
    start = balanced(BilinearProblem(target), scale=scale, width=width, seed=1)
    assert distance(plain(target, start, 2.0, 2.0), riccati_reference(target, start, 2.0)) < 1e-11
    assert distance(plain(target, start, 2.0, 1.0), riccati_reference(target, start, 2.0)) > 0.1


def plain(target: Array, start: Factors, time: float, rate: float = 2.0) -> Array:
    """M8 as it stands, in float64."""
    m, n = target.shape
    f = np.block([[np.zeros((m, m)), target], [target.T, np.zeros((n, n))]])
    values, basis = np.linalg.eigh(f)
    integral = (basis * np.expm1(rate * values * time) / (rate * values)) @ basis.T
    z = np.vstack([start.U, start.V])
    forward = (basis * np.exp(values * time)) @ basis.T @ z
    return forward @ np.linalg.solve(np.eye(start.width) + z.T @ integral @ z, forward.T)


def test_nothing_is_lost_where_the_plain_formula_loses_everything() -> None:
    problem = BilinearProblem(np.diag([3.0, 1.0]) + 0.1)
    start = balanced(problem, scale=0.1, width=2, seed=4)
    assert distance(plain(problem.target, start, 6), exact_late(start, 6)) > 1e-10
    try:
        assert distance(plain(problem.target, start, 16), exact_late(start, 16)) > 1e-2
    except np.linalg.LinAlgError:
        pass  # singular to the last bit, on some machines
    found = solve(problem, start, [6.0, 16.0])
    assert distance(state(found, 0), exact_late(start, 6)) <= ROUNDING
    assert distance(state(found, 1), exact_late(start, 16)) <= ROUNDING


def exact_late(start: Factors, time: float) -> Array:
    return riccati_reference(np.diag([3.0, 1.0]) + 0.1, start, time)


@pytest.mark.parametrize(
    ("m", "n", "width"), [(3, 3, 3), (4, 2, 2), (2, 4, 5), (4, 3, 1), (3, 4, 2)]
)
def test_very_late_the_best_operator_of_the_width_is_found(m: int, n: int, width: int) -> None:
    """At s₁ t of several thousand, far past e^709: Eckart and Young's truncation."""
    problem = BilinearProblem(random_target(m, n, 8))
    found = solve(problem, balanced(problem, scale=1e-3, width=width, seed=2), [900.0, 2000.0])
    svd, kept = problem.svd, min(width, m, n)
    best = (svd.P[:, :kept] * svd.s[:kept]) @ svd.R[:, :kept].T
    np.testing.assert_allclose(found.operator(-1), best, atol=ROUNDING)
    assert float(svd.s[0]) * 2000 > 2000


def test_without_a_target_everything_decays_like_one_over_t() -> None:
    """F = 0: X(t) = Z₀ (I + t Z₀ᵀZ₀)⁻¹ Z₀ᵀ."""
    problem = BilinearProblem(np.zeros((4, 3)))
    start = balanced(problem, scale=1.0, width=2, seed=3)
    z = np.vstack([start.U, start.V])
    times = [0.0, 1.0, 1e6]
    found = solve(problem, start, times)
    for k, t in enumerate(times):
        expected = z @ np.linalg.solve(np.eye(2) + t * z.T @ z, z.T)
        assert distance(state(found, k), expected) <= ROUNDING


# --- all closed forms against SciPy ------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A start that has a closed form."""

    problem: BilinearProblem
    start: Factors
    form: str


def case(kind: str, m: int, n: int, width: int, scale: float, seed: int, rank: int) -> Case:
    """A start of one of the three kinds on a target of a rank; equal values for seeds 3, 6, ..."""
    generator = np.random.default_rng(seed)
    k = min(m, n)
    s = np.sort(generator.uniform(0.5, 2.0, k))[::-1] * (np.arange(k) < rank)
    if seed % 3 == 0:
        s = np.where(s > 0, np.round(s), 0.0)
    target = (orthonormal(m, k, generator) * s) @ orthonormal(n, k, generator).T
    problem = BilinearProblem(target)
    if kind == "M8":
        return Case(problem, balanced(problem, scale=scale, width=width, seed=seed), kind)
    kept = np.arange(k) < width
    a = scale * generator.uniform(0.5, 1.5, k) * generator.choice([-1, 1], k) * kept
    b = a * generator.choice([-1, 1], k)
    if kind == "M5":
        b = scale * generator.uniform(2, 3, k) * generator.choice([-1, 1], k) * kept
    return Case(problem, aligned(problem, a, b, width=width, seed=seed), kind)


CASES = st.builds(
    case,
    st.sampled_from(["M4", "M5", "M8"]),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([1e-3, 0.1, 1.0]),
    st.integers(0, 10**6),
    st.integers(0, 4),
)
TIMES = st.floats(0.0, 8.0)


def integrated(chosen: Case, time: float) -> tuple[Array, Array]:
    """SciPy's answer, with the flow written down here."""
    target, u, v = chosen.problem.target, chosen.start.U, chosen.start.V

    def velocity(_: float, flat: Array) -> Array:
        left, right = flat[: u.size].reshape(u.shape), flat[u.size :].reshape(v.shape)
        error = left @ right.T - target
        return -np.concatenate([(error @ right).ravel(), (error.T @ left).ravel()])

    first = np.concatenate([u.ravel(), v.ravel()])
    end = solve_ivp(velocity, (0, time), first, method="DOP853", rtol=1e-11, atol=1e-14).y[:, -1]
    return end[: u.size].reshape(u.shape), end[u.size :].reshape(v.shape)


@pytest.mark.parametrize("kind", ["M4", "M5", "M8"])
@pytest.mark.parametrize(("m", "n", "width"), [(2, 2, 2), (4, 3, 3), (2, 4, 3), (3, 4, 2)])
def test_the_integrated_flow_agrees(kind: str, m: int, n: int, width: int) -> None:
    chosen = case(kind, m, n, width, 0.3, 10 * m + n, 2)
    found = solve(chosen.problem, chosen.start, [3.0])
    u, v = integrated(chosen, 3.0)
    z = np.vstack([u, v])
    # 1e-11 a step, with e^{2 s t} < 10^6 between a step's error and the end at most.
    assert distance(state(found, 0), z @ z.T) <= 1e-7
    assert found.source.startswith("exact: M")


# --- laws ------------------------------------------------------------------------------------


@given(CASES)
def test_at_time_zero_the_start_comes_back(chosen: Case) -> None:
    found = solve(chosen.problem, chosen.start, [0.0, 1.0])
    size = float(np.linalg.norm(np.vstack([chosen.start.U, chosen.start.V])))
    np.testing.assert_allclose(found.start.U, chosen.start.U, atol=ROUNDING * size)
    np.testing.assert_allclose(found.start.V, chosen.start.V, atol=ROUNDING * size)
    np.testing.assert_allclose(
        found.operator(0), chosen.start.operator, rtol=0, atol=ROUNDING * size**2
    )


@given(CASES, TIMES, TIMES)
def test_two_runs_in_a_row_are_one(chosen: Case, first: float, second: float) -> None:
    """The semigroup law, in U Vᵀ, U Uᵀ and V Vᵀ."""
    once = solve(chosen.problem, chosen.start, [first + second])
    half = solve(chosen.problem, chosen.start, [first])
    try:
        again = solve(chosen.problem, half.factors(0), [second])
    except NoClosedForm:
        # On its way to a saddle a state shrinks and its rounding grows: then it is refused,
        # rightly, as what it escapes along is no longer known.
        assert chosen.form == "M8"
        assert half.imbalance()[0] < 1e-12
        reject()
    assert close(state(again, 0), state(once, 0))


def has_one_basis(problem: BilinearProblem) -> bool:
    """Whether the singular vectors are unique up to signs; else a moved target has its own."""
    s = problem.svd.s
    return bool(s[-1] > 1e-9 and (-np.diff(s) > 1e-9).all())


def close(got: Array, expected: Array) -> bool:
    """Equal to 1e-9 of the larger of the state and 1e-6, the smallest start's operator.

    Rounding of a state between, 1e-16 of the start at least, is amplified by what is learned after
    it over what was there before, 1e6 at most with these scales.
    """
    return bool(np.abs(got - expected).max() <= 1e-9 * max(1e-6, np.abs(expected).max()))


@given(CASES, TIMES, st.integers(0, 1000))
def test_rotated_problems_have_rotated_solutions(chosen: Case, time: float, seed: int) -> None:
    assume(chosen.form != "M5" or has_one_basis(chosen.problem))
    m, n = chosen.problem.shape
    generator = np.random.default_rng(seed)
    turn, other = orthonormal(m, m, generator), orthonormal(n, n, generator)
    inner = orthonormal(chosen.start.width, chosen.start.width, generator)
    found = solve(chosen.problem, chosen.start, [time])
    rotated = BilinearProblem(turn @ chosen.problem.target @ other.T)
    start = Factors(turn @ chosen.start.U @ inner, other @ chosen.start.V @ inner)
    image = solve(rotated, start, [time])
    both = np.block([[turn, np.zeros((m, n))], [np.zeros((n, m)), other]])
    assert close(state(image, 0), both @ state(found, 0) @ both.T)


@given(CASES)
def test_what_the_flow_conserves_is_conserved(chosen: Case) -> None:
    """‖UᵀU − VᵀV‖, which a rotation on the right does not change (F9)."""
    found = solve(chosen.problem, chosen.start, [0.0, 0.5, 3.0, 20.0])
    sizes = np.sum(found.U**2, axis=(1, 2)) + np.sum(found.V**2, axis=(1, 2))
    assert np.abs(np.diff(found.imbalance())).max() <= ROUNDING * sizes.max()


@given(CASES)
def test_the_loss_never_rises(chosen: Case) -> None:
    loss = solve(chosen.problem, chosen.start, np.linspace(0, 10, 40)).loss()
    assert np.diff(loss).max() <= ROUNDING * loss[0]


@given(CASES, TIMES)
def test_a_transposed_problem_exchanges_the_factors(chosen: Case, time: float) -> None:
    assume(chosen.form != "M5" or has_one_basis(chosen.problem))
    found = solve(chosen.problem, chosen.start, [time])
    mirrored = BilinearProblem(chosen.problem.target.T)
    image = solve(mirrored, Factors(chosen.start.V, chosen.start.U), [time])
    exchanged = state(image, 0)
    n = chosen.problem.shape[1]
    order = np.r_[n : len(exchanged), :n]
    assert close(exchanged[np.ix_(order, order)], state(found, 0))


@given(CASES)
def test_aligned_modes_do_not_mix(chosen: Case) -> None:
    if chosen.form == "M8":
        return
    found = solve(chosen.problem, chosen.start, [0.0, 1.0, 5.0, 50.0])
    assert found.source in ("exact: M4", f"exact: {chosen.form}")
    assert found.mixing().max() <= ROUNDING * max(1.0, np.abs(found.modes()).max())


# --- which form is chosen, and what is refused ---------------------------------------------------


def test_each_start_gets_its_closed_form() -> None:
    problem = BilinearProblem(random_target(5, 3, 9))
    for start, form in [
        (aligned(problem, 0.1, seed=3, width=4), "M4"),
        (aligned(problem, 0.0), "M4"),
        (aligned(problem, 0.1, [0.1, -0.1, 0.1]), "M4"),
        (aligned(problem, [0.1, 0.2, 0.3], [0.1, 0.2, 0.4], seed=0), "M5"),
        (balanced(problem, scale=0.1, width=3, seed=0), "M8"),
        (balanced(problem, scale=1e-7, width=1, seed=0), "M8"),
    ]:
        assert solve(problem, start, [0.0, 1.0]).source == f"exact: {form}"


def test_another_basis_of_equal_singular_values_falls_to_m8() -> None:
    """M13: aligned in one basis of the pair, not in the one that the problem chose."""
    problem = BilinearProblem(np.diag([2.0, 2.0, 1.0]))
    turn = np.eye(3)
    turn[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    strengths = np.array([0.3, 0.1, 0.2])
    start = Factors(turn * strengths, turn * strengths)
    found = solve(problem, start, [0.7])
    assert found.source == "exact: M8"
    left, right = mode_factors([2.0, 2.0, 1.0], strengths, strengths, [0.7])
    np.testing.assert_allclose(
        found.operator(0), (turn * (left * right)[0]) @ turn.T, atol=ROUNDING
    )


def test_an_unbalanced_unaligned_start_is_refused_with_its_distances() -> None:
    problem = BilinearProblem(random_target(3, 4, 10))
    start = gaussian(problem, scale=0.1, width=2, seed=0)
    with pytest.raises(NoClosedForm) as caught:
        solve(problem, start, [0.0, 1.0])
    message = str(caught.value)
    assert "\n" not in message
    assert f"{np.linalg.norm(start.imbalance):.3g}" in message
    for word in ("start", "not balanced", "nor aligned", "integrate"):
        assert word in message


@pytest.mark.parametrize("by", [1e-11, 1e-9, 1e-6])
def test_a_slightly_unbalanced_start_is_refused(by: float) -> None:
    problem = BilinearProblem(random_target(3, 3, 11))
    start = balanced(problem, scale=0.5, width=2, seed=0)
    with pytest.raises(NoClosedForm):
        solve(problem, Factors(start.U * (1 + by), start.V), [1.0])


def test_a_small_direction_may_not_hide_behind_a_large_one() -> None:
    """A column that is twice as long in U as in V, and 1e-8 of the first; the third is even."""
    problem = BilinearProblem(random_target(3, 3, 12))
    generator = np.random.default_rng(12)
    lengths = np.array([1.0, 1e-8, 1e-8])
    left = orthonormal(3, 3, generator) * lengths * np.array([1.0, 2.0, 1.0])
    hidden = Factors(left, orthonormal(3, 3, generator) * lengths)
    assert np.linalg.norm(hidden.imbalance) < 4e-15 * np.linalg.norm(left) ** 2
    with pytest.raises(NoClosedForm):
        solve(problem, hidden, [1.0])


def test_factors_of_a_mode_that_are_not_parallel_are_not_aligned() -> None:
    """Every overlap between modes is 0, and Q = 0 too, but u_i and v_i are across each other."""
    columns = np.eye(4)
    start = Factors(np.diag([0.2, 0.3]) @ columns[:2], np.diag([0.1, 0.4]) @ columns[2:])
    with pytest.raises(NoClosedForm, match="nor aligned"):
        solve(BilinearProblem(np.diag([2.0, 1.0])), start, [1.0])


@pytest.mark.parametrize("side", ["U", "V"])
@pytest.mark.parametrize("by", [1e-12, 1e-9, 1e-3])
def test_a_slightly_misaligned_start_is_refused(by: float, side: str) -> None:
    """Unbalanced too, so that nothing is left to fall back to."""
    problem = BilinearProblem(random_target(3, 3, 13))
    start = aligned(problem, [0.3, 0.2, 0.1], [0.1, 0.2, 0.3], seed=0)
    turned = np.array([[1.0, -by, 0.0], [by, 1.0, 0.0], [0.0, 0.0, 1.0]])
    basis = problem.svd.P if side == "U" else problem.svd.R
    moved = basis @ turned @ basis.T @ getattr(start, side)
    other = Factors(moved, start.V) if side == "U" else Factors(start.U, moved)
    with pytest.raises(NoClosedForm, match="nor aligned"):
        solve(problem, other, [1.0])


def test_the_factors_given_move_without_jumps() -> None:
    """One representative for all times, from the start on: no rotation or sign comes and goes."""
    problem = BilinearProblem(random_target(3, 4, 14))
    start = balanced(problem, scale=0.3, width=4, seed=1)
    times = np.linspace(0, 6, 1201)
    found = solve(problem, start, times)
    np.testing.assert_allclose(found.factors(0).U, start.U, atol=1e-15)
    moved = np.abs(np.diff(found.U, axis=0)).max(axis=(1, 2))
    # A jump is of the size of the factors; over a step of 1/200 a motion with the rates of the
    # problem, a few s₁, is a few hundredths of it.
    assert moved.max() <= 4 * problem.svd.s[0] * times[1] * np.abs(found.U).max()
    assert problem.svd.s[0] * times[1] < 0.02


def test_a_part_outside_the_singular_vectors_may_not_overlap_a_mode() -> None:
    problem = BilinearProblem(np.vstack([np.diag([2.0, 1.0]), np.zeros((1, 2))]))
    start = aligned(problem, [0.1, 0.2], [0.1, 0.3], width=3)
    left = np.array(start.U)
    left[2, 1] = 1e-6
    with pytest.raises(NoClosedForm, match="nor aligned"):
        solve(problem, Factors(left, start.V), [1.0])


@pytest.mark.parametrize(
    ("times", "error", "words"),
    [
        ([0.0, 1.0, 1.0], InputError, "strictly increasing"),
        ([1.0, 0.5], InputError, "strictly increasing"),
        ([-1.0, 0.5], InputError, "from 0 on"),
        ([0.0, np.nan], InputError, "finite"),
        ([0.0, np.inf, np.inf], InputError, "finite"),
        ([], InputError, "empty"),
        (1.0, ShapeError, "1 are expected"),
        ([[0.0, 1.0]], ShapeError, "1 are expected"),
    ],
)
def test_bad_times_are_refused(times: object, error: type[Exception], words: str) -> None:
    problem = BilinearProblem(np.eye(2))
    with pytest.raises(error, match=words) as caught:
        solve(problem, aligned(problem, 0.1), times)  # pyright: ignore[reportArgumentType]
    assert str(caught.value).startswith("times: ")
    assert "\n" not in str(caught.value)


def test_a_start_of_the_wrong_shape_is_refused() -> None:
    start = aligned(BilinearProblem(np.ones((2, 3))), 0.1)
    with pytest.raises(ShapeError, match=r"start: .* 2 and 3 rows; 3 and 2 are expected"):
        solve(BilinearProblem(np.ones((3, 2))), start, [0.0])
