"""Layers and adapters in closed form: against mpmath, SciPy, the laws of a flow, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import NoClosedForm, ShapeError
from nonmixing.parameterisation import adapter, layers, tied
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, balanced, orthonormal

TIMES = [0.0, 0.05, 0.4, 1.5, 5.0]


def problem_of(
    m: int, n: int, s: Sequence[float], count: int, seed: int = 0, rate: float = 1.0
) -> BilinearProblem:
    """N layers on a random target with these singular values."""
    generator = np.random.default_rng([seed, m, n])
    P, R = orthonormal(m, len(s), generator), orthonormal(n, len(s), generator)
    return BilinearProblem((P * s) @ R.T, parameterisation=layers(count), rates=(rate,) * count)


def start_of(
    problem: BilinearProblem, c: Sequence[float], widths: Sequence[int], seed: int = 1
) -> dict[str, Array]:
    """Aligned balanced layers with modes c in the problem's singular bases, random O between."""
    generator, svd = np.random.default_rng(seed), problem.svd
    active = np.flatnonzero(c)
    count = len(problem.parameterisation.variables)
    a = np.asarray(c, np.float64)[active] ** (1 / count)
    frames = [
        svd.R[:, active],
        *(orthonormal(width, len(active), generator) for width in widths),
        svd.P[:, active],
    ]
    return {f"W{i + 1}": (above * a) @ below.T for i, (below, above) in enumerate(pairwise(frames))}


def states(run: Trajectory) -> list[Array]:
    """All variables at all times, one after another."""
    found = [run.state(k) for k in range(len(run))]
    return [state[name] for state in found for name in sorted(state)]  # pyright: ignore


CASES = [
    (3, 4, 3, [2.0, 1.0, 0.3], [0.01, 0.2, 0.0], [3, 3]),
    (3, 3, 4, [2.0, 1.0, 0.3], [0.5, 1e-3, 3.0], [5, 4]),
    (4, 3, 3, [1.5, 0.7, 0.0], [0.1, 0.05, 0.4], [4, 3, 6]),
    (5, 4, 2, [1.0, 0.4], [0.3, 0.01], [2, 3, 4, 2]),
    (3, 1, 3, [1.2], [1e-2], [1, 1]),
]


@pytest.mark.parametrize(("count", "m", "n", "s", "c", "widths"), CASES)
def test_layers_follow_the_integrated_flow(
    count: int, m: int, n: int, s: list[float], c: list[float], widths: list[int]
) -> None:
    """Every layer, at another rate too; negative control: a clock 1 % slow."""
    for rate in (1.0, 0.4):
        problem = problem_of(m, n, s, count, rate=rate)
        start = start_of(problem, c, widths)
        exact = solve(problem, start, TIMES)
        assert exact.source == "exact: M14"
        integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
        for got, expected in zip(states(exact), states(integrated), strict=True):
            # The integrator's own error over these times.
            np.testing.assert_allclose(got, expected, atol=1e-9)
        slow = solve(problem, start, 0.99 * np.array(TIMES))
        assert (
            max(
                np.abs(got - expected).max()
                for got, expected in zip(states(slow), states(integrated), strict=True)
            )
            > 1e-5
        )


@pytest.mark.parametrize("count", [3, 4, 7])
def test_modes_of_layers_are_those_of_mpmath(count: int) -> None:
    """c' = N c^{2 − 2/N} (s − c), integrated from c₀ to c(t) with 40 digits: that takes t."""
    s, c = [3.0, 1.0, 0.2], [1e-3, 0.2, 0.5]
    problem = problem_of(3, 4, s, count)
    run = solve(problem, start_of(problem, c, [3] * (count - 1)), [0.7])
    with mp.workdps(40):
        power = 2 - mp.mpf(2) / count
        for value, begin, end in zip(s, c, run.modes()[0], strict=True):
            took = mp.quad(
                lambda x, value=value: 1 / (count * x**power * (value - x)),
                mp.linspace(mp.mpf(begin), mp.mpf(float(end)), 8),
            )
            speed = count * mp.mpf(float(end)) ** power * (value - mp.mpf(float(end)))
            # Rounding of c(t), in time; the target's singular values have a few units too.
            assert abs(took - mp.mpf(0.7)) * abs(speed) <= 1e-13 * abs(float(end))


@pytest.mark.parametrize("c", [[0.1, 0.02, 0.3], [0.1, 0.1, 0.1], [0.2, 0.0, 0.1]])
@pytest.mark.parametrize("s", [[1.0, 1.0, 0.5], [0.7, 0.7, 0.7], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
def test_any_choice_of_equal_singular_vectors_is_aligned(s: list[float], c: list[float]) -> None:
    """The start is aligned with vectors of its own choice, of s = 0 with some outside P too."""
    generator = np.random.default_rng(5)
    P, R = orthonormal(5, 5, generator), orthonormal(4, 4, generator)
    problem = BilinearProblem((P[:, :3] * s) @ R[:, :3].T, parameterisation=layers(3))
    left, right = P[:, :3].copy(), R[:, :3].copy()
    for value in set(s):
        group = np.flatnonzero(np.array(s) == value)
        if value > 0:
            turn = orthonormal(len(group), len(group), generator)
            left[:, group], right[:, group] = left[:, group] @ turn, right[:, group] @ turn
        else:
            room = P[:, np.append(group, [3, 4])]
            left[:, group] = room @ orthonormal(len(group) + 2, len(group), generator)
    a = np.array(c) ** (1 / 3)
    O1, O2 = orthonormal(4, 3, generator), orthonormal(3, 3, generator)
    start = {"W1": (O1 * a) @ right.T, "W2": (O2 * a) @ O1.T, "W3": (left * a) @ O2.T}
    exact = solve(problem, start, TIMES)
    integrated = integrate(problem, start, TIMES, rtol=1e-12, atol=1e-14)
    for got, expected in zip(states(exact), states(integrated), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)


@given(st.sampled_from(CASES), st.integers(0, 10**6), st.floats(0.01, 20.0), st.floats(0.01, 0.99))
def test_laws_of_layered_flows(
    case: tuple[int, int, int, list[float], list[float], list[int]],
    seed: int,
    time: float,
    share: float,
) -> None:
    """The start at t = 0, the semigroup law, balance, the loss never rises, the limit."""
    count, m, n, s, c, widths = case
    problem = problem_of(m, n, s, count, seed)
    start = start_of(problem, c, widths, seed)
    run = solve(problem, start, [0.0, share * time, time, np.inf])
    for name, value in start.items():
        np.testing.assert_allclose(run.state(0)[name], value, atol=1e-13)  # pyright: ignore
    again = solve(problem, run.state(1), [(1 - share) * time])
    np.testing.assert_allclose(again.operator(0), run.operator(2), atol=1e-10)
    assert run.imbalance().max() <= 1e-12
    assert np.diff(run.loss()).max() <= 1e-12
    reached = np.where(np.array(c) > 0, problem.svd.s[: len(c)], 0.0)
    np.testing.assert_allclose(run.modes()[-1][: len(c)], reached, atol=1e-12)
    assert len(run.resampled([share * time])) == 1


def test_a_small_mode_beside_large_ones_keeps_its_digits() -> None:
    """c over nine decades and four layers: directions must not take up what rounds the large."""
    problem = problem_of(4, 4, [2.0, 1.0, 0.5, 0.2], 4)
    start = start_of(problem, [1e-9, 1.0, 1e-5, 0.1], [4, 5, 6])
    run = solve(problem, start, [0.0])
    assert float(run.stats["misalignment"]) < 1e-15
    for name, value in start.items():
        np.testing.assert_allclose(run.state(0)[name], value, atol=1e-14)  # pyright: ignore


def test_bad_starts_are_refused_with_numbers_and_the_alternative() -> None:
    problem = problem_of(3, 3, [2.0, 1.0, 0.5], 3)
    start = start_of(problem, [0.1, 0.2, 0.3], [3, 3])
    tilted = {**start, "W2": start["W2"] + 1e-6 * np.eye(3)}
    uneven = {**start, "W2": 1.001 * start["W2"]}
    below = {**start, "W3": start["W3"] * -1.0}
    wide = {
        "W1": np.random.default_rng(0).standard_normal((2, 3)),
        "W2": np.random.default_rng(1).standard_normal((3, 2)),
        "W3": start["W3"],
    }
    for bad, message in [
        (tilted, r"not aligned .*\(relative deviation .*e-07"),
        (uneven, r"differs between layers by 0\.000"),
        (below, r"mode \d is -0\.\d+"),
        (wide, r"has 3 of them, and at most 2 pass"),
    ]:
        with pytest.raises(NoClosedForm, match=message + r".*integrate\(problem, start, times\)"):
            solve(problem, bad, TIMES)
    decaying = BilinearProblem(problem.target, decay=0.1, parameterisation=layers(3))
    hurried = BilinearProblem(problem.target, rates=(1, 2, 1), parameterisation=layers(3))
    with pytest.raises(NoClosedForm, match=r"decay 0\.1.*integrate"):
        solve(decaying, start, TIMES)
    with pytest.raises(NoClosedForm, match=r"rates are 1, 2, 1.*integrate"):
        solve(hurried, start, TIMES)
    with pytest.raises(ShapeError, match="start: W3"):
        solve(problem, {**start, "W3": np.ones((4, 3))}, TIMES)


def test_other_parameterisations_are_refused() -> None:
    symmetric = BilinearProblem(np.eye(2), parameterisation=tied())
    with pytest.raises(NoClosedForm, match=r"tied has no closed form here.*integrate"):
        solve(symmetric, {"U": np.ones((2, 1))}, TIMES)


@pytest.mark.parametrize("kind", ["M4", "M8"])
@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.5, 2.0)])
def test_two_layers_are_two_factors(kind: str, rates: tuple[float, float]) -> None:
    target = np.random.default_rng(3).standard_normal((4, 3))
    plain = BilinearProblem(target)
    if kind == "M4":
        start = aligned(plain, 0.1, seed=2)
    else:
        start = balanced(plain, scale=0.3, width=2, seed=2)
    problem = BilinearProblem(target, parameterisation=layers(2), rates=rates)
    named = {"W1": np.sqrt(rates[0]) * start.V.T, "W2": np.sqrt(rates[1]) * start.U}
    exact = solve(problem, named, TIMES)
    assert exact.source == f"exact: {kind}"
    integrated = integrate(problem, named, TIMES, rtol=1e-12, atol=1e-14)
    for k in range(len(TIMES)):
        np.testing.assert_allclose(exact.operator(k), integrated.operator(k), atol=1e-9)
        state = exact.state(k)
        product = state["W2"] @ state["W1"]  # pyright: ignore
        np.testing.assert_allclose(product, exact.operator(k), atol=1e-13)
    np.testing.assert_allclose(exact.resampled([0.4]).operator(0), exact.operator(2), atol=1e-14)
    np.testing.assert_allclose(exact.loss(), integrated.loss(), atol=1e-8)


@pytest.mark.parametrize("decay", [0.0, 0.2])
def test_an_adapter_follows_the_integrated_flow(decay: float) -> None:
    """Of T − Q₀; negative control: of T."""
    generator = np.random.default_rng(4)
    target, base = generator.standard_normal((4, 3)), generator.standard_normal((4, 3))
    start = balanced(BilinearProblem(target), scale=0.3, width=2, seed=2)
    problem = BilinearProblem(target, parameterisation=adapter(base), decay=decay)
    named = {"B": start.U, "A": start.V.T}
    exact = solve(problem, named, TIMES)
    assert exact.source == "exact: M8"
    integrated = integrate(problem, named, TIMES, rtol=1e-12, atol=1e-14)
    for k in range(len(TIMES)):
        np.testing.assert_allclose(exact.operator(k), integrated.operator(k), atol=1e-9)
    np.testing.assert_allclose(exact.loss(), integrated.loss(), atol=1e-8)
    np.testing.assert_allclose(exact.modes(), integrated.modes(), atol=1e-8)
    other = solve(BilinearProblem(target, decay=decay), Factors(start.U, start.V), TIMES)
    assert np.abs(base + other.operator(-1) - integrated.operator(-1)).max() > 0.05


def test_an_adapter_that_starts_at_zero_is_refused_unless_it_is_balanced() -> None:
    """LoRA's own start, B = 0 and A random, has A Aᵀ for its imbalance; of width 1 it is M9."""
    generator = np.random.default_rng(4)
    target, base = generator.standard_normal((4, 3)), generator.standard_normal((4, 3))
    problem = BilinearProblem(target, parameterisation=adapter(base))
    with pytest.raises(NoClosedForm, match=r"‖UᵀU − VᵀV‖_F = .*integrate"):
        solve(problem, {"B": np.zeros((4, 2)), "A": generator.standard_normal((2, 3))}, TIMES)
    single = {"B": np.zeros((4, 1)), "A": generator.standard_normal((1, 3))}
    exact = solve(problem, single, TIMES)
    assert exact.source == "exact: M9"
    integrated = integrate(problem, single, TIMES, rtol=1e-12, atol=1e-14)
    for k in range(len(TIMES)):
        np.testing.assert_allclose(exact.operator(k), integrated.operator(k), atol=1e-9)
