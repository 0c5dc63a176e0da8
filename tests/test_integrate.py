"""The integrated flow: against closed forms, against a loss differentiated here; its faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import Method, integrate
from nonmixing.errors import InputError, NonmixingError, ShapeError
from nonmixing.parameterisation import absorbed
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, balanced, gaussian

TIMES = np.linspace(0, 6, 25)


@pytest.fixture
def problem() -> BilinearProblem:
    return BilinearProblem(np.random.default_rng(3).standard_normal((4, 3)) / 2)


@pytest.mark.parametrize("method", get_args(Method))
def test_every_method_follows_the_closed_form(problem: BilinearProblem, method: Method) -> None:
    start = balanced(problem, scale=0.2, width=3, seed=0)
    found = integrate(problem, start, TIMES, method=method, rtol=1e-7, atol=1e-10)
    exact = solve(problem, start, TIMES)
    assert found.status == "ok"
    # A few hundred steps at most, each to 1e-7, amplified less than 100 times: modes of size 1.
    assert np.abs(found.modes() - exact.modes()).max() < 1e-7 * 300 * 100
    assert np.abs(found.mixing() - exact.mixing()).max() < 1e-7 * 300 * 100
    np.testing.assert_array_equal(found.times, TIMES)


def test_a_finer_tolerance_is_closer_to_the_closed_form(problem: BilinearProblem) -> None:
    start = aligned(problem, [0.1, 0.2, 0.3], [0.2, 0.1, 0.1], seed=0)
    exact = solve(problem, start, TIMES).modes()
    errors = [
        np.abs(integrate(problem, start, TIMES, rtol=rtol).modes() - exact).max()
        for rtol in (1e-4, 1e-7, 1e-10)
    ]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_the_closed_form_of_another_target_is_not_followed(problem: BilinearProblem) -> None:
    start = balanced(problem, scale=0.2, width=3, seed=0)
    found = integrate(problem, start, TIMES)
    wrong = solve(BilinearProblem(-problem.target), start, TIMES)
    assert np.abs(found.modes() - wrong.modes(problem)).max() > 0.1


def test_what_is_conserved_drifts_within_the_tolerance(problem: BilinearProblem) -> None:
    start = gaussian(problem, scale=0.5, width=2, seed=1)
    drifts = [
        float(integrate(problem, start, TIMES, rtol=rtol).stats["imbalance drift"])
        for rtol in (1e-5, 1e-10)
    ]
    assert 0 < drifts[1] < 1e-3 * drifts[0]
    assert drifts[0] < 1e-5 * 300


def modified_velocity(
    problem: BilinearProblem, start: Factors, rate: float
) -> Callable[..., Array]:
    """−∇(L + (η/4)‖∇L‖²), with the outer gradient by complex steps, which are exact to rounding."""
    cut, left, right = start.U.size, start.U.shape, start.V.shape

    def loss(flat: Array) -> complex:
        u, v = flat[:cut].reshape(left), flat[cut:].reshape(right)
        error = u @ v.T - problem.target
        slopes = np.sum((error @ v) ** 2) + np.sum((error.T @ u) ** 2)
        return complex(np.sum(error**2) / 2 + rate / 4 * slopes)

    def velocity(_: float, flat: Array) -> Array:
        steps = 1e-30j * np.eye(len(flat))
        return np.array([-loss(flat + step).imag / 1e-30 for step in steps])

    return velocity


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.4])
def test_the_modified_flow_is_the_gradient_flow_of_the_modified_loss(
    problem: BilinearProblem, rate: float
) -> None:
    start = gaussian(problem, scale=0.4, width=2, seed=2)
    found = integrate(problem, start, [0.0, 2.0], rtol=1e-10, rate=rate)
    first = np.concatenate([start.U.ravel(), start.V.ravel()])
    velocity = modified_velocity(problem, start, rate)
    end = solve_ivp(velocity, (0, 2), first, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(found.U[-1].ravel(), end[: start.U.size], atol=1e-8)
    np.testing.assert_allclose(found.V[-1].ravel(), end[start.U.size :], atol=1e-8)
    assert ("imbalance drift" in found.stats) == (rate == 0)
    assert found.stats["rate"] == rate


def test_another_correction_is_another_flow(problem: BilinearProblem) -> None:
    start = gaussian(problem, scale=0.4, width=2, seed=2)
    ends = [integrate(problem, start, [2.0], rate=rate).operator(0) for rate in (0.05, 0.1, 0.0)]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    assert np.abs(ends[0] - ends[2]).max() > 1e-3


def test_the_start_alone_is_enough(problem: BilinearProblem) -> None:
    start = gaussian(problem, scale=0.4, width=2, seed=2)
    found = integrate(problem, start, [0.0])
    np.testing.assert_array_equal(found.operator(0), start.operator)
    assert found.stats["steps"] == 0


def test_a_run_out_of_evaluations_ends_with_a_status(problem: BilinearProblem) -> None:
    """An explicit method on a stiff problem: singular values far apart."""
    stiff = BilinearProblem(np.diag([1e5, 1.0]))
    start = balanced(stiff, scale=0.1, width=2, seed=0)
    times = np.linspace(0, 10, 101)
    found = integrate(stiff, start, times, method="RK45", max_evaluations=2000)
    assert 1 <= len(found) < 101
    assert found.status.startswith("stopped at t = ")
    assert "2000 evaluations" in found.status
    assert "LSODA" in found.status
    assert found.times[-1] <= float(found.status.split()[4].rstrip(","))
    assert "\n" not in found.status
    assert integrate(stiff, start, times, method="LSODA", max_evaluations=2000).status == "ok"


def test_an_explosion_ends_with_a_status() -> None:
    """Ascent instead of descent reaches infinity in finite time: x' = x³ for one mode, from 1."""
    ascent = replace(absorbed(), loss="-norm2(E) / 2")
    single = BilinearProblem(np.zeros((1, 1)), parameterisation=ascent)
    times = np.linspace(0, 1, 20)  # a = b = 1/√(1 − 2t)
    methods: tuple[Method, ...] = ("DOP853", "LSODA")
    for method in methods:
        found = integrate(single, aligned(single, 1.0), times, method=method, rtol=1e-6)
        assert found.status.startswith("stopped at t = 0.")
        assert found.times[-1] == pytest.approx(9 / 19)
        reached = float(found.status.split()[4].rstrip(","))
        # A hundred steps of 1e-6 move 1/x², and with it the end, by 1e-4; x itself, at 9/19 where
        # x² = 19, by 19 times that.
        assert 9 / 19 <= reached <= 0.5 + 1e-4
        np.testing.assert_allclose(found.U[:, 0, 0], (1 - 2 * found.times) ** -0.5, rtol=19e-4)


def test_a_velocity_that_overflows_is_named(problem: BilinearProblem) -> None:
    start = aligned(problem, 1e150)
    found = integrate(problem, start, [0.0, 1.0])
    assert found.status == "stopped at t = 0, short of t = 1: the velocity overflows"
    assert len(found) == 1
    with pytest.raises(
        NonmixingError, match=r"the first of them was not reached; stopped at t = 0"
    ):
        integrate(problem, start, [1.0])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"rtol": 1e-20}, "rtol"),
        ({"rtol": 1.0}, "rtol"),
        ({"rtol": float("nan")}, "rtol"),
        ({"atol": 0.0}, "atol"),
        ({"atol": float("inf")}, "atol"),
        ({"rate": -0.1}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": np.inf}, "rate"),
        ({"rate": "0.1"}, "rate"),
        ({"rate": True}, "rate"),
        ({"rate": [0.1, 0.2]}, "rate"),
        ({"rtol": "1e-9"}, "rtol"),
        ({"rtol": np.full(2, 1e-9)}, "rtol"),
        ({"atol": None}, "atol"),
        ({"max_evaluations": 0}, "max_evaluations"),
        ({"max_evaluations": 10.5}, "max_evaluations"),
        ({"method": "Euler"}, "method"),
        ({"method": ["LSODA"]}, "method"),
    ],
)
def test_bad_settings_are_refused(
    problem: BilinearProblem, settings: dict[str, Any], name: str
) -> None:
    start = aligned(problem, 0.1)
    with pytest.raises(InputError, match=f"^{name}: got .* expected") as caught:
        integrate(problem, start, [1.0], **settings)
    assert "\n" not in str(caught.value)


def test_bad_times_and_starts_are_refused(problem: BilinearProblem) -> None:
    start = aligned(problem, 0.1)
    with pytest.raises(InputError, match="times: begins at -1"):
        integrate(problem, start, [-1.0, 0.0])
    with pytest.raises(InputError, match="strictly increasing"):
        integrate(problem, start, [0.0, 0.0])
    with pytest.raises(InputError, match=r"times: ends at infinity; .* solve\(problem, start"):
        integrate(problem, start, [0.0, np.inf])
    with pytest.raises(ShapeError, match="start: U and V have 3 and 4 rows"):
        integrate(problem, Factors(start.V, start.U), [1.0])


def test_bare_arrays_are_no_start_and_no_problem(problem: BilinearProblem) -> None:
    start = aligned(problem, 0.1)
    U, V = start.U, start.V
    bad: list[tuple[Any, Any, str]] = [
        (problem, (U, V), r"start: got a tuple of two arrays; pass nm\.Factors\(U, V\)"),
        (problem, [U, V], r"start: got a list of two arrays; pass nm\.Factors\(U, V\)"),
        (problem, (U.tolist(), V.tolist()), "start: got a tuple of two lists; pass nm"),
        (problem, [start, (U, V)], "start: got a tuple of two arrays; pass nm"),
        (problem, [(U, V), (U, V)], "start: got a list of two tuples; pass nm"),
        (problem, U, r"start: got an array of shape \(4, 3\); pass nm"),
        (problem, [], "start: got an empty sequence"),
        (problem.target, start, r"problem: got an array of shape \(4, 3\); .* nm\.BilinearProblem"),
    ]
    for posed, given, words in bad:
        with pytest.raises(InputError, match=f"^{words}") as caught:
            integrate(posed, given, [0.0, 1.0])
        assert "\n" not in str(caught.value)
    assert len(integrate(problem, (start, start), [0.0, 1.0])) == 2
    mapping = integrate(problem, {"U": U, "V": V}, [0.0, 1.0])
    np.testing.assert_array_equal(
        mapping.operator(1), integrate(problem, start, [0.0, 1.0]).operator(1)
    )
