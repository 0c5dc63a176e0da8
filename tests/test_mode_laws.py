"""Modes of any depth (M14), with decay (D9), and small factors: against mpmath, and their laws."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonmixing.dynamics.mode_laws import depth_modes, hypergeometric, mode_factors
from nonmixing.errors import InputError, NoClosedForm, ShapeError

UNIT = float(np.finfo(np.float64).eps)
DEPTHS = st.integers(2, 8)
VALUES = st.floats(-3, 3).map(lambda x: 10.0**x)
STARTS = st.floats(-8, 1).map(lambda x: 10.0**x)


def sensitivity(s: float, c: float, depth: int, t: float) -> float:
    """|d log c/d log t| = N t c^{1 − 2/N} |s − c|: what multiplies the rounding of t and s."""
    return depth * t * c ** (1 - 2 / depth) * abs(s - c)


@pytest.mark.parametrize("depth", [3, 4, 7])
@pytest.mark.parametrize(
    ("s", "c"), [(2.0, 1e-3), (0.7, 1.9), (0.01, 30.0), (5.0, 4.9), (0.0, 0.6)]
)
def test_a_mode_of_any_depth_solves_its_equation(s: float, c: float, depth: int) -> None:
    """Against mpmath's Taylor integration of a' = a^{N−1} (s − a^N), a = c^{1/N}."""
    first = c ** (1 / depth)
    with mp.workdps(30):
        power = 1 / mp.mpf(depth)
        flow = mp.odefun(
            lambda _, y: [y[0] ** (depth - 1) * (s - y[0] ** depth)], 0, [mp.mpf(c) ** power]
        )
        scale = 1 / (first ** (depth - 2) * max(s, c))
        for t in (0.1 * scale, 0.5 * scale, 2 * scale):
            expected = float(flow(t)[0] ** depth)
            got = depth_modes([s], [c], depth, [t])[0, 0]
            assert abs(got - expected) <= 64 * UNIT * expected * (
                1 + sensitivity(s, expected, depth, t)
            )


@given(DEPTHS, VALUES, STARTS, st.floats(-3, 4), st.floats(0.01, 0.99))
def test_depth_has_the_semigroup_law(
    depth: int, s: float, c: float, exponent: float, share: float
) -> None:
    t = 10.0**exponent
    once = depth_modes([s], [c], depth, [share * t, t])[:, 0]
    twice = depth_modes([s], [once[0]], depth, [(1 - share) * t])[0, 0]
    shift = depth * t * once[1] ** (1 - 2 / depth) * abs(s - once[1])
    before = (once[1] / once[0]) ** (1 - 2 / depth) * (1 + sensitivity(s, once[0], depth, t))
    assert abs(twice - once[1]) <= 256 * UNIT * once[1] * (1 + shift + before)


@given(VALUES, STARTS, st.floats(-3, 4))
def test_depth_two_is_m4(s: float, c: float, exponent: float) -> None:
    t = 10.0**exponent
    a, b = mode_factors([s], [np.sqrt(c)], [np.sqrt(c)], [t])
    np.testing.assert_allclose(depth_modes([s], [c], 2, [t]), a * b, rtol=1e-13)


@given(DEPTHS, VALUES, STARTS)
def test_depth_begins_at_the_start_and_ends_at_the_target(depth: int, s: float, c: float) -> None:
    found = depth_modes([s, 0.0, s], [c, c, 0.0], depth, [0.0, np.inf])
    np.testing.assert_array_equal(found, [[c, c, 0.0], [s, 0.0, 0.0]])


@pytest.mark.parametrize("n", [3, 8, 40])
def test_the_hypergeometric_function_is_accurate_near_one(n: int) -> None:
    """Where SciPy's has no correct digit."""
    for b in (2 / n, 2 - 2 / n):
        for x in (1e-30, 0.1, 0.499, 0.501, 0.95, 0.999, 1 - 1e-9, 1 - 1e-14):
            z = min(x ** (1 / n), 1 - 2 * UNIT)
            with mp.workdps(40):
                expected = float(mp.hyp2f1(1, mp.mpf(b), mp.mpf(b) + 1, mp.mpf(z) ** n))
            np.testing.assert_allclose(hypergeometric(b, np.array([z]), n), expected, rtol=1e-14)


def test_a_wrong_depth_is_noticed() -> None:
    right, wrong = (depth_modes([2.0], [1e-2], depth, [3.0])[0, 0] for depth in (3, 4))
    assert abs(right - wrong) > 1e9 * UNIT


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1.0], [-1.0], 3, [0.0]), InputError, "c0: got -1"),
        (([-1.0], [1.0], 3, [0.0]), InputError, "s: got -1"),
        (([1.0], [1.0, 2.0], 3, [0.0]), ShapeError, "c0: got 2 modes"),
        (([1.0], [1.0], 1, [0.0]), InputError, "depth: got 1"),
        (([1.0], [1.0], 2.5, [0.0]), InputError, r"depth: got 2\.5"),
        (([1.0], [1.0], 3, [-1.0]), InputError, "times"),
    ],
)
def test_bad_modes_are_refused(arguments: tuple, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        depth_modes(*arguments)


@pytest.mark.parametrize("ratio", [1e-8, -1e-8, 1e-4, 0.3, -0.3, -0.7])
@pytest.mark.parametrize("s", [0.0, 1e-3, 1.0, 1e3])
def test_the_smaller_factor_is_accurate_to_its_own_size(s: float, ratio: float) -> None:
    """M5 literally, b = a x: early, where (p − q)/√2 has no digit of b left, and late."""
    for t in (1e-3, 1e-1, 3.0, 100.0):
        left, right = mode_factors([s], [1.0], [ratio], [t])
        with mp.workdps(200):
            lam, x = 1 - mp.mpf(ratio) ** 2, mp.mpf(ratio)
            if s == 0:
                x_t = x * mp.exp(-lam * t)
            else:
                k = mp.sqrt(4 * mp.mpf(s) ** 2 + lam**2)
                upper, lower = (-lam + k) / (2 * s), (-lam - k) / (2 * s)
                share = (x - upper) / (x - lower) * mp.exp(-k * mp.mpf(t))
                x_t = (upper - share * lower) / (1 - share)
            expected, growth = float(lam * x_t / (1 - x_t**2)), float(x_t)
        # b passes through zero where it begins below: there its terms are what is accurate.
        terms = max(abs(growth), abs(ratio) if ratio < 0 else 0.0)
        error = abs(left[0, 0] * right[0, 0] - expected)
        assert error <= 1e-13 * max(abs(expected), terms * left[0, 0] ** 2)


def test_decaying_modes_end_where_d9_says() -> None:
    """D9: max(s − d, 0); a = −b goes to 0."""
    s = np.array([3.0, 1.0, 0.5, 3.0, 0.0])
    a = np.array([1e-3, 1e-3, 0.4, 0.5, 0.2])
    left, right = mode_factors(s, a, a * [1, 1, 1, -1, 1], [0.0, np.inf], decay=1.0)
    np.testing.assert_allclose((left * right)[1], [2.0, 0.0, 0.0, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(left[0], a, rtol=1e-15)


def test_decay_refuses_an_unbalanced_mode() -> None:
    with pytest.raises(NoClosedForm, match=r"a² − b².*0\.75.*integrate"):
        mode_factors([1.0], [1.0], [0.5], [1.0], decay=0.1)
