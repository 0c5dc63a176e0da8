"""The report on independent modes: silent from aligned starts, and right about the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nonmixing as nm
from nonmixing.errors import InputError, ShapeError
from nonmixing.independence import independence
from nonmixing.parameterisation import trained_gates

TARGET = np.array([[1.0, 0.2, 0.0], [0.1, 0.6, 0.3], [0.0, 0.2, 0.4], [0.3, 0.0, 0.1]])


@pytest.mark.parametrize("b", [0.2, -0.1])
def test_aligned_starts_are_independent(b: float) -> None:
    problem = nm.BilinearProblem(TARGET)
    report = independence(problem, nm.aligned(problem, 0.2, b, seed=1))
    assert report.usable
    assert report.error.max() < 1e-12
    assert report.mixing.max() < 1e-12
    assert "for all t" in str(report)


def test_other_starts_are_not() -> None:
    """From a large start that is not aligned the prediction fails, and the report knows when."""
    problem = nm.BilinearProblem(TARGET)
    start = nm.gaussian(problem, scale=0.5, width=3, seed=2)
    report = independence(problem, start)
    assert not report.usable
    k = int(np.searchsorted(report.truth.times, report.usable_until))
    assert report.error[k] > report.tolerance >= report.error[k - 1]
    assert (report.error[:k] <= report.tolerance).all()
    run = nm.integrate(problem, start, report.truth.times, rtol=1e-10)
    assert np.abs(run.modes() - report.actual).max() < 1e-7
    assert f"{report.usable_until:.4g}" in str(report)


def test_smaller_starts_may_be_used_for_longer() -> None:
    problem = nm.BilinearProblem(TARGET)
    errors = [
        independence(problem, nm.balanced(problem, scale=scale, width=3, seed=3)).mixing.max()
        for scale in (1e-1, 1e-2, 1e-3)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_exponents_are_those_of_the_ledger() -> None:
    problem = nm.BilinearProblem(np.diag([1.0, 0.7, 0.7, 0.0]))
    report = independence(problem, nm.balanced(problem, scale=0.1, width=4, seed=0), [0.0, 1.0])
    assert report.exponents[0, 1] == pytest.approx(0.3)
    finite = np.isfinite(report.exponents)
    assert finite.sum() == 2  # not between equal modes, and not to a mode that is 0
    assert "10" not in str(report).split("less")[0].split("times smaller")[0]
    assert "2 times less" in str(report)
    assert "M10" in str(report)


def test_the_prediction_is_the_law_of_a_mode() -> None:
    """Alone means c' = (s − c) √(λ² + 4c²), from c₀ = u · v, with λ = ‖u + v‖ ‖u − v‖."""
    problem = nm.BilinearProblem(TARGET)
    start = nm.gaussian(problem, scale=0.4, width=2, seed=5)
    report = independence(problem, start, np.linspace(0, 4, 4001))
    u, v = problem.svd.P.T @ start.U, problem.svd.R.T @ start.V
    lam = np.linalg.norm(u + v, axis=1) * np.linalg.norm(u - v, axis=1)
    c = report.predicted
    slope = np.gradient(c, report.truth.times, axis=0)
    law = (problem.svd.s - c) * np.hypot(lam, 2 * c)
    assert np.abs(slope - law)[1:-1].max() < 1e-5
    assert c[0] == pytest.approx(np.sum(u * v, axis=1))


def test_orthogonal_rows_are_independent_though_not_aligned() -> None:
    """Each mode in a plane of its own: u and v are not parallel, and yet no mode feels another."""
    problem = nm.BilinearProblem(np.diag([1.0, 0.5]))
    planes = np.array([[0.1, 0.3, 0, 0], [0, 0, 0.2, -0.1]])
    others = np.array([[0.3, 0.1, 0, 0], [0, 0, 0.1, 0.2]])
    report = independence(problem, nm.Factors(planes, others))
    assert report.error.max() < 1e-8
    assert report.usable


def test_repeated_and_zero_singular_values() -> None:
    problem = nm.BilinearProblem(np.diag([1.0, 1.0, 0.0]))
    report = independence(problem, nm.aligned(problem, [0.3, 0.1, 0.2]))
    assert report.usable
    assert report.error.max() < 1e-12


BAD: list[tuple[str, dict[str, Any]]] = [
    ("tolerance: got 0", {"tolerance": 0.0}),
    ("its target is 0", {"problem": nm.BilinearProblem(np.zeros((4, 3)))}),
    ("trained gates", {"problem": nm.BilinearProblem(TARGET, parameterisation=trained_gates())}),
    ("at one learning rate", {"problem": nm.BilinearProblem(TARGET, rates=(1.0, 2.0))}),
    ("or no decay", {"problem": nm.BilinearProblem(TARGET, decay=0.1)}),
    ("times:", {"times": [1.0, 0.0]}),
    ("tolerance: got '1'", {"tolerance": "1"}),
    ("tolerance: got True", {"tolerance": True}),
    ("tolerance: got nan", {"tolerance": np.nan}),
    ("problem: got an array", {"problem": TARGET}),
    (r"start: got a tuple of two arrays; pass nm\.Factors", {"start": (TARGET, TARGET)}),
    (
        "trained gates",
        {
            "problem": nm.BilinearProblem(TARGET, parameterisation=trained_gates()),
            "start": {"W": TARGET[:, :2], "V": TARGET[:3, :2], "a": np.ones(2)},
        },
    ),
]


@pytest.mark.parametrize(("message", "changed"), BAD)
def test_bad_input_is_named(message: str, changed: dict[str, Any]) -> None:
    problem = nm.BilinearProblem(TARGET)
    arguments: dict[str, Any] = {
        "problem": problem,
        "start": nm.gaussian(problem, scale=0.5, width=2, seed=0),
        **changed,
    }
    with pytest.raises(InputError, match=message) as caught:
        independence(**arguments)
    assert "\n" not in str(caught.value)


def test_a_start_that_does_not_fit() -> None:
    problem = nm.BilinearProblem(TARGET)
    with pytest.raises(ShapeError):
        independence(problem, nm.Factors(np.ones((3, 2)), np.ones((3, 2))))


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_one_learning_rate_is_another_clock(rate: float) -> None:
    """The prediction keeps the truth's time: aligned starts stay independent at every rate."""
    problem = nm.BilinearProblem(TARGET, rates=(rate, rate))
    start = nm.aligned(problem, 0.2, 0.1, seed=1)
    report = independence(problem, start)
    assert report.usable
    assert report.error.max() < 1e-12
    plain = independence(nm.BilinearProblem(TARGET), start)
    np.testing.assert_allclose(report.truth.times * rate, plain.truth.times, rtol=1e-14)
    np.testing.assert_allclose(report.actual, plain.actual, atol=1e-12)


def test_the_limit_is_no_way_to_be_usable() -> None:
    """Only at infinity above the tolerance: usable until the last time before it."""
    problem = nm.BilinearProblem(np.diag([1.0, 0.5]))
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    start = nm.Factors(turn * [0.3, 0.1], turn * [0.3, 0.1])
    narrow = nm.Factors(start.U[:, :1], start.V[:, :1])  # rank 1: one mode is never learned
    report = independence(problem, narrow, [0.0, 1e-6, np.inf])
    assert report.error[1] < report.tolerance < report.error[2]
    assert not report.usable
    assert report.usable_until == 1e-6


def test_a_mapping_is_a_start_too() -> None:
    problem = nm.BilinearProblem(TARGET)
    start = nm.gaussian(problem, scale=0.5, width=2, seed=0)
    by_name = independence(problem, {"U": start.U, "V": start.V}, [0.0, 1.0])
    np.testing.assert_array_equal(by_name.error, independence(problem, start, [0.0, 1.0]).error)
