"""λ-balanced starts (M9), weight decay, two rates, the limit, other singular bases: every shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError, NoClosedForm
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, balanced, orthonormal


def uneven(m: int, n: int, width: int, lam: float, scale: float, seed: int) -> Factors:
    """A random start with UᵀU − VᵀV = λI, λ of either sign, not aligned."""
    if lam < 0:
        other = uneven(n, m, width, -lam, scale, seed)
        return Factors(other.V, other.U)
    generator = np.random.default_rng([seed, m, n, width])
    rank = min(n, width)
    lengths = np.zeros(width)
    lengths[:rank] = scale * generator.uniform(0.5, 1.5, rank)
    frame = orthonormal(width, width, generator)
    left, right = orthonormal(m, width, generator), orthonormal(n, rank, generator)
    return Factors(
        (left * np.sqrt(lengths**2 + lam)) @ frame, (right * lengths[:rank]) @ frame[:rank]
    )


def target(m: int, n: int, seed: int) -> Array:
    return np.random.default_rng([seed, m, n]).standard_normal((m, n))


SHAPES = [
    (m, n, width, sign)
    for m, n in [(3, 3), (4, 2), (2, 4), (1, 3), (3, 1)]
    for width in range(1, 5)
    for sign in (1, -1)
    if width <= (m if sign > 0 else n)
]


def states(trajectory: Trajectory) -> Array:
    """[U; V][U; V]ᵀ at each time."""
    found = [trajectory.factors(k) for k in range(len(trajectory))]
    stacked = np.array([np.vstack([f.U, f.V]) for f in found])
    return stacked @ np.swapaxes(stacked, 1, 2)


TIMES = [0.0, 0.01, 0.3, 1.0, 4.0]


@pytest.mark.parametrize(("m", "n", "width", "sign"), SHAPES)
@pytest.mark.parametrize("lam", [1e-3, 0.5, 4.0])
def test_a_lambda_balanced_start_follows_the_integrated_flow(
    m: int, n: int, width: int, sign: int, lam: float
) -> None:
    problem = BilinearProblem(target(m, n, 1))
    start = uneven(m, n, width, sign * lam, 0.3, 2)
    exact = solve(problem, start, TIMES)
    assert exact.source in ("exact: M9", "exact: M5")
    if exact.source == "exact: M9":
        assert abs(float(exact.stats["imbalance constant"]) - sign * lam) < 1e-14
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    # The integrator's own error over these times.
    np.testing.assert_allclose(states(exact), states(integrated), atol=1e-9)


@pytest.mark.parametrize("lam", [0.7, -0.7])
def test_the_other_sign_of_lambda_does_not_follow_the_flow(
    monkeypatch: pytest.MonkeyPatch, lam: float
) -> None:
    """Negative control: F with λ turned round, and F with λ for λ/2."""
    from nonmixing.dynamics import exact as module

    problem, start = BilinearProblem(target(3, 3, 1)), uneven(3, 3, 2, lam, 0.3, 2)
    integrated = states(integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14))
    right = module.Spectrum
    for factor in (-1.0, 2.0):

        def wrong(s: Array, constant: float, *rest: object, by: float = factor) -> object:
            return right(s, by * constant, *rest)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(module, "Spectrum", wrong)
        found = solve(problem, start, TIMES)
        assert np.abs(states(found) - integrated).max() > 0.05


@given(
    st.sampled_from(SHAPES), st.sampled_from([1e-6, 0.1, 3.0]), st.integers(0, 10**6),
    st.floats(0.01, 30.0), st.floats(0.01, 0.99),
)  # fmt: skip
def test_lambda_balanced_flows_have_the_semigroup_law(
    shape: tuple[int, int, int, int], lam: float, seed: int, time: float, share: float
) -> None:
    m, n, width, sign = shape
    problem, start = BilinearProblem(target(m, n, seed)), uneven(m, n, width, sign * lam, 0.5, seed)
    once = solve(problem, start, [share * time, time])
    twice = solve(problem, once.factors(0), [(1 - share) * time])
    np.testing.assert_allclose(states(twice)[0], states(once)[1], atol=1e-9)


@given(st.sampled_from(SHAPES), st.integers(0, 10**6))
def test_laws_of_a_lambda_balanced_flow(shape: tuple[int, int, int, int], seed: int) -> None:
    """The start at t = 0; λ conserved; the loss never rises; a transposed problem exchanges."""
    m, n, width, sign = shape
    lam = sign * 0.8
    problem, start = BilinearProblem(target(m, n, seed)), uneven(m, n, width, lam, 0.5, seed)
    times = [0.0, 1e-3, 0.1, 1.0, 10.0, 1e4, np.inf]
    found = solve(problem, start, times)
    np.testing.assert_allclose(found.factors(0).U, start.U, atol=1e-14)
    np.testing.assert_allclose(found.factors(0).V, start.V, atol=1e-14)
    for k in range(len(times)):
        gap = found.factors(k).imbalance
        np.testing.assert_allclose(gap, lam * np.eye(width), atol=1e-12)
    assert np.diff(found.loss()).max() <= 1e-12
    mirrored = solve(BilinearProblem(problem.target.T), Factors(start.V, start.U), times)
    for k in range(len(times)):
        np.testing.assert_allclose(mirrored.operator(k), found.operator(k).T, atol=1e-9)


@pytest.mark.parametrize("lam", [1.0, -1.0, 1e-6])
def test_a_factor_much_smaller_than_the_other_keeps_its_digits(lam: float) -> None:
    """V 1e-9 of U early: Q is linear in time there, and relative errors do not see U."""
    problem = BilinearProblem(target(3, 3, 5))
    start = uneven(3, 3, 2, lam, 1e-9, 3)
    small, large = ("V", "U") if lam > 0 else ("U", "V")
    time = 1e-6
    found = solve(problem, start, [time])
    T = problem.target if small == "U" else problem.target.T
    expected = getattr(start, small) + time * T @ getattr(start, large)
    operator = start.U @ expected.T if small == "V" else expected @ start.V.T
    error = np.linalg.norm(found.operator(0) - operator) / np.linalg.norm(operator)
    # Second order in time: (s₁² + λ²) t².
    assert error <= 1e2 * time * max(1.0, abs(lam))
    moved = solve(problem, start, [1e-12]).operator(0)
    first = start.operator + 1e-12 * (
        problem.target @ start.V @ start.V.T + start.U @ start.U.T @ problem.target
    )
    assert np.linalg.norm(moved - first) <= 1e-10 * np.linalg.norm(first)


# --- weight decay and two rates ----------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "width"), [(3, 3, 3), (4, 2, 2), (2, 4, 1), (3, 2, 5)])
@pytest.mark.parametrize("decay", [0.05, 0.6, 3.0])
def test_balanced_starts_with_decay_follow_the_integrated_flow(
    m: int, n: int, width: int, decay: float
) -> None:
    problem = BilinearProblem(target(m, n, 7), decay=decay)
    start = balanced(problem, scale=0.4, width=width, seed=3)
    exact = solve(problem, start, TIMES)
    assert exact.source == "exact: M8"
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(states(exact), states(integrated), atol=1e-9)
    forgotten = solve(BilinearProblem(problem.target), start, TIMES)
    assert np.abs(states(forgotten) - states(integrated)).max() > 1e-3


def test_aligned_modes_with_decay_are_d9() -> None:
    problem = BilinearProblem(np.diag([3.0, 1.0, 0.5]), decay=0.8)
    start = aligned(problem, 0.1, seed=1)
    exact = solve(problem, start, [*TIMES, np.inf])
    assert exact.source == "exact: D9"
    np.testing.assert_allclose(exact.modes()[-1], [2.2, 0.2, 0.0], rtol=1e-14, atol=1e-15)
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(states(exact)[:-1], states(integrated), atol=1e-10)


@pytest.mark.parametrize("rates", [(2.0, 0.5), (0.3, 0.3), (1.0, 5.0)])
def test_two_rates_are_absorbed(rates: tuple[float, float]) -> None:
    """UᵀU/η_U = VᵀV/η_V is what balanced means then."""
    problem = BilinearProblem(target(3, 4, 2), rates=rates)
    even = balanced(BilinearProblem(problem.target), scale=0.3, width=2, seed=4)
    start = Factors(even.U * np.sqrt(rates[0]), even.V * np.sqrt(rates[1]))
    exact = solve(problem, start, TIMES)
    assert exact.source == "exact: M8"
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(states(exact), states(integrated), atol=1e-9)
    if rates[0] != rates[1]:
        with pytest.raises(NoClosedForm, match="not balanced"):
            solve(problem, even, TIMES)


@dataclass(frozen=True)
class Refused:
    problem: BilinearProblem
    start: Factors
    words: tuple[str, ...]


POSED = BilinearProblem(target(3, 3, 1), decay=0.1)
REFUSED = {
    "decay and λ": Refused(POSED, uneven(3, 3, 2, 0.5, 0.3, 1), ("decay 0.1", "λ = 0.5")),
    "decay and unbalanced modes": Refused(
        POSED, aligned(POSED, [0.3, 0.2, 0.1], [0.1, 0.2, 0.1]), ("decay", "0.08", "mode 0")
    ),
    "decay and two rates": Refused(
        BilinearProblem(target(3, 3, 1), decay=0.1, rates=(1.0, 2.0)),
        balanced(POSED, scale=0.1, width=2, seed=0),
        ("decay", "rates 1 and 2"),
    ),
    "nearly λ-balanced": Refused(
        BilinearProblem(target(3, 3, 1)),
        Factors(uneven(3, 3, 2, 0.5, 0.3, 1).U * [1, 1 + 1e-9], uneven(3, 3, 2, 0.5, 0.3, 1).V),
        ("nor λ-balanced", "relative deviation"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_closed_form_is_refused_with_the_reason(case: str) -> None:
    refused = REFUSED[case]
    with pytest.raises(NoClosedForm) as caught:
        solve(refused.problem, refused.start, [1.0])
    message = str(caught.value)
    assert "\n" not in message
    for word in (*refused.words, "integrate"):
        assert word in message


# --- limits, late times, other bases -------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "width"), [(3, 4, 2), (4, 3, 3), (3, 3, 1), (2, 5, 4)])
@pytest.mark.parametrize("lam", [0.0, 0.5, -0.5])
def test_the_limit_is_the_best_operator_and_late_times_reach_it(
    m: int, n: int, width: int, lam: float
) -> None:
    """Eckart and Young; at s₁ t = 10⁹ too, where no exponential is a float."""
    if width > (m if lam > 0 else n if lam < 0 else width):
        width = m if lam > 0 else n
    problem = BilinearProblem(1e3 * target(m, n, 8))
    start = (
        uneven(m, n, width, lam, 1e-3, 2)
        if lam
        else balanced(problem, scale=1e-3, width=width, seed=2)
    )
    found = solve(problem, start, [0.1, 1e6, np.inf])
    svd, kept = problem.svd, min(width, m, n)
    best = (svd.P[:, :kept] * svd.s[:kept]) @ svd.R[:, :kept].T
    np.testing.assert_allclose(found.operator(1), best, atol=1e-14 * 1e4)
    np.testing.assert_allclose(found.operator(1), found.operator(2), rtol=0, atol=1e-14 * 1e4)


def test_equal_singular_values_share_the_limit() -> None:
    """Width 1 on s = (2, 2, 1): the limit is the start's own direction in the plane of the two."""
    generator = np.random.default_rng(3)
    P, R = orthonormal(3, 3, generator), orthonormal(3, 3, generator)
    problem = BilinearProblem((P * [2.0, 2.0, 1.0]) @ R.T)
    start = balanced(problem, scale=0.1, width=1, seed=5)
    found = solve(problem, start, [1e6, np.inf])
    direction = (P.T @ start.U + R.T @ start.V)[:2, 0]
    direction /= np.linalg.norm(direction)
    expected = 2 * np.outer(P[:, :2] @ direction, R[:, :2] @ direction)
    np.testing.assert_allclose(found.operator(0), expected, atol=1e-13)
    np.testing.assert_allclose(found.operator(1), expected, atol=1e-13)


def test_a_start_aligned_in_another_basis_is_m5() -> None:
    """M13, with unbalanced modes; of s = 0 left and right are free, outside P and R as well."""
    generator = np.random.default_rng(4)
    P, R = orthonormal(6, 4, generator), orthonormal(5, 4, generator)
    s = np.array([2.0, 2.0, 0.7, 0.0])
    problem = BilinearProblem((P * s) @ R.T)
    outer = orthonormal(6, 6, generator)
    spare = outer - P @ (P.T @ outer)
    left = np.linalg.svd(spare)[0][:, :1]  # outside P
    turn = orthonormal(2, 2, generator)
    P2, R2 = np.hstack([P[:, :2] @ turn, P[:, 2:3], left]), np.hstack([R[:, :2] @ turn, R[:, 2:]])
    a, b = np.array([0.3, 0.1, 0.2, 0.4]), np.array([0.1, 0.2, -0.3, 0.5])
    frame = orthonormal(4, 4, generator)
    start = Factors((P2 * a) @ frame, (R2 * b) @ frame)
    found = solve(problem, start, TIMES)
    assert found.source == "exact: M5"
    np.testing.assert_allclose(found.factors(0).U, start.U, atol=1e-14)
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(states(found), states(integrated), atol=1e-9)


def test_states_are_coordinates_and_no_complement_is_held() -> None:
    generator = np.random.default_rng(5)
    m, n, k, width = 400, 300, 3, 2
    P, R = orthonormal(m, k, generator), orthonormal(n, k, generator)
    problem = BilinearProblem((P, np.array([3.0, 2.0, 1.0]), R))
    start = balanced(problem, scale=0.01, width=width, seed=1)
    found = solve(problem, start, [0.0, 1.0, 5.0])
    assert found.left is not None
    assert found.left.shape == (m, k + width)
    assert found.U.shape == (3, k + width, width)
    np.testing.assert_allclose(found.factors(0).U, start.U, atol=1e-15)
    np.testing.assert_allclose(found.at(5.0).U, found.factors(2).U, atol=1e-15)


def refusal(problem: BilinearProblem, start: Factors) -> str:
    with pytest.raises(NoClosedForm) as caught:
        solve(problem, start, [1.0])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_refusal_names_the_gap_that_its_number_measures() -> None:
    """‖UᵀU − VᵀV‖ at equal rates, whatever they are; else the norm with the rates, and both."""
    plain = BilinearProblem(target(3, 4, 2))
    even = balanced(plain, scale=0.3, width=2, seed=4)
    two = BilinearProblem(plain.target, rates=(1.0, 2.0))
    message, gap = refusal(two, even), even.U.T @ even.U - even.V.T @ even.V / 2
    assert f"‖UᵀU/η_U − VᵀV/η_V‖_F = {np.linalg.norm(gap):.3g} with the rates" in message
    assert "η_U = 1 and η_V = 2" in message
    assert "UᵀU/η_U − VᵀV/η_V = λI" in message
    assert "UᵀU − VᵀV" not in message
    assert "balanced(problem, ...)" in message
    other = Factors(even.U * [1.0, 2.0], even.V)
    for rate in (1.0, 2.0):
        message = refusal(BilinearProblem(plain.target, rates=(rate, rate)), other)
        assert f"‖UᵀU − VᵀV‖_F = {np.linalg.norm(other.imbalance):.3g} (" in message
        assert "η" not in message


def test_a_refusal_of_unbalanced_modes_tells_their_own_difference() -> None:
    problem = BilinearProblem(target(3, 3, 1), decay=0.1, rates=(2.0, 2.0))
    start = aligned(problem, [0.3, 0.2, 0.1], [0.1, 0.2, 0.1])
    assert "a² − b² = 0.08 in mode 0" in refusal(problem, start)


def test_solve_refuses_bare_arrays() -> None:
    problem = BilinearProblem(target(3, 4, 2))
    U, V = np.ones((3, 2)), np.ones((4, 2))
    with pytest.raises(InputError, match=r"^start: got a tuple of two arrays; pass nm\.Factors"):
        solve(problem, (U, V), [1.0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^problem: got an array of shape \(3, 4\)"):
        solve(problem.target, Factors(U, V), [1.0])  # pyright: ignore[reportArgumentType]
