"""Problems, starts, whitening: what they promise, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flow_models import MODELS, Model
from hypothesis import given
from hypothesis import strategies as st

from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.errors import InputError, ShapeError
from nonmixing.parameterisation import adapter, fixed_gates, layers, tied, trained_gates
from nonmixing.problem import (
    BilinearProblem,
    Factors,
    Samples,
    aligned,
    balanced,
    gaussian,
    orthonormal,
    whiten,
)

SIZES = st.integers(1, 6)


def random_problem(m: int, n: int, seed: int) -> BilinearProblem:
    return BilinearProblem(np.random.default_rng(seed).standard_normal((m, n)))


@given(SIZES, SIZES, st.integers(0, 1000))
def test_the_svd_is_one_and_always_the_same(m: int, n: int, seed: int) -> None:
    problem = random_problem(m, n, seed)
    svd, k = problem.svd, min(m, n)
    assert (svd.P.shape, svd.s.shape, svd.R.shape) == ((m, k), (k,), (n, k))
    np.testing.assert_allclose((svd.P * svd.s) @ svd.R.T, problem.target, atol=1e-13)
    np.testing.assert_allclose(svd.P.T @ svd.P, np.eye(k), atol=1e-14)
    np.testing.assert_allclose(svd.R.T @ svd.R, np.eye(k), atol=1e-14)
    assert (np.diff(svd.s) <= 0).all()
    largest = np.abs(svd.P).argmax(axis=0)
    assert (svd.P[largest, np.arange(k)] > 0).all()
    assert problem.svd is svd
    np.testing.assert_array_equal(BilinearProblem(problem.target.copy()).svd.P, svd.P)
    np.testing.assert_allclose(svd.modes(problem.target), np.diag(svd.s), atol=1e-13)


def test_arrays_are_copied_and_read_only() -> None:
    target = np.ones((2, 3))
    problem = BilinearProblem(target)
    target[0, 0] = 5
    assert problem.target[0, 0] == 1
    for array in (problem.target, problem.svd.P, problem.svd.s, aligned(problem, 1.0).U):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_whitened_samples_pose_the_problem_of_their_cross_moment() -> None:
    """½ mean‖y − U Vᵀx‖² is ½‖U Vᵀ − target‖² and a constant: a difference of losses shows it."""
    generator = np.random.default_rng(0)
    inputs = whiten(generator.standard_normal((50, 4))).data
    outputs = generator.standard_normal((50, 3))
    problem = BilinearProblem.from_samples(inputs, outputs)
    np.testing.assert_allclose(problem.target, outputs.T @ inputs / 50, rtol=1e-14)
    assert problem.shape == (3, 4)
    assert problem.samples is not None
    assert len(problem.samples) == 50
    first, second = (gaussian(problem, scale=1.0, width=2, seed=s).operator for s in (1, 2))
    by_samples = [
        np.mean(np.sum((outputs - inputs @ q.T) ** 2, axis=1)) / 2 for q in (first, second)
    ]
    by_target = [np.sum((q - problem.target) ** 2) / 2 for q in (first, second)]
    np.testing.assert_allclose(by_samples[0] - by_samples[1], by_target[0] - by_target[1])


def test_inputs_that_are_not_whitened_are_refused_with_their_deviation() -> None:
    inputs = whiten(np.random.default_rng(0).standard_normal((50, 4))).data * np.sqrt(1.25)
    with pytest.raises(InputError, match=r"inputs: not whitened.* by 0\.25 .*whiten") as caught:
        BilinearProblem.from_samples(inputs, np.ones((50, 1)))
    assert "\n" not in str(caught.value)


def test_whitening_is_on_the_support() -> None:
    """Five columns of rank three, on scales from 1e-3 to 1e3, one of them constant zero."""
    generator = np.random.default_rng(1)
    inputs = generator.standard_normal((40, 3)) @ generator.standard_normal((3, 4))
    inputs = np.hstack([inputs * [1e-3, 1, 10, 1e3], np.zeros((40, 1))])
    whitening = whiten(inputs)
    assert whitening.dimension == 3
    assert whitening.transform.shape == (5, 3)
    np.testing.assert_allclose(whitening.data.T @ whitening.data / 40, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(inputs @ whitening.transform, whitening.data, atol=1e-9)
    BilinearProblem.from_samples(whitening.data, np.ones((40, 2)))


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0, np.nan])
def test_whitening_refuses_what_it_cannot_do(tolerance: float) -> None:
    with pytest.raises(InputError, match=r"^tolerance: got"):
        whiten(np.eye(3), tolerance)
    with pytest.raises(InputError, match=r"^inputs: all entries are zero"):
        whiten(np.zeros((3, 2)))


@given(SIZES, SIZES, SIZES, st.integers(0, 1000))
def test_aligned_starts_are_diagonal_in_the_modes(m: int, n: int, extra: int, seed: int) -> None:
    problem = random_problem(m, n, seed)
    k = min(m, n)
    generator = np.random.default_rng(seed)
    a, b = generator.standard_normal((2, k))
    start = aligned(problem, a, b, width=k + extra - 1, seed=seed)
    np.testing.assert_allclose(problem.svd.modes(start.operator), np.diag(a * b), atol=1e-13)
    for factor, basis, strengths in ((start.U, problem.svd.P, a), (start.V, problem.svd.R, b)):
        gram = basis.T @ factor @ factor.T @ basis
        np.testing.assert_allclose(gram, np.diag(strengths**2), atol=1e-13)
        np.testing.assert_allclose(basis @ (basis.T @ factor), factor, atol=1e-13)


def test_without_a_seed_mode_i_is_on_column_i() -> None:
    problem = random_problem(3, 4, 0)
    for strengths in ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0]):
        start = aligned(problem, strengths)
        np.testing.assert_array_equal(start.U, problem.svd.P * strengths)
        np.testing.assert_array_equal(start.V, problem.svd.R * strengths)
    assert aligned(problem, 0.5, width=5).width == 5


def test_a_narrow_aligned_start_holds_as_many_modes_as_columns() -> None:
    problem = random_problem(4, 4, 1)
    modes = problem.svd.modes(aligned(problem, 0.5, width=2, seed=0).operator)
    np.testing.assert_allclose(np.diag(modes), [0.25, 0.25, 0, 0], atol=1e-15)
    chosen = aligned(problem, [0, 3, 0, 0], [1, 2, 0, 0], width=2)
    np.testing.assert_allclose(
        np.diag(problem.svd.modes(chosen.operator)), [0, 6, 0, 0], atol=1e-14
    )
    with pytest.raises(ShapeError, match="3 modes are nonzero; with width 2 at most 2"):
        aligned(problem, [1, 1, 1, 0], width=2)


@given(SIZES, SIZES, SIZES, st.integers(0, 1000), st.sampled_from([1e-8, 1e-3, 1.0, 10.0]))
def test_balanced_starts_are_balanced_and_not_aligned(
    m: int, n: int, width: int, seed: int, scale: float
) -> None:
    problem = random_problem(m, n, seed)
    start = balanced(problem, scale=scale, width=width, seed=seed)
    uneven = gaussian(problem, scale=scale, width=width, seed=seed)
    size = float(np.sum(start.U**2))
    assert (start.U.shape, start.V.shape) == ((m, width), (n, width))
    assert np.abs(start.imbalance).max() <= 1e-14 * size
    np.testing.assert_allclose(start.operator, uneven.operator, atol=1e-14 * size)
    if width > 1:
        # Its columns are mixed, so neither factor is a Gaussian one or has orthogonal columns.
        gram = start.U.T @ start.U
        assert np.abs(gram - np.diag(np.diag(gram))).max() > 1e-12 * size


def test_gaussian_starts_have_the_scale_asked_for_and_are_not_balanced() -> None:
    problem = BilinearProblem(np.zeros((100, 80)))
    start = gaussian(problem, scale=0.3, width=50, seed=4)
    # 9000 entries: the standard deviation of their standard deviation is 0.3/√18000.
    entries = np.concatenate([start.U.ravel(), start.V.ravel()])
    assert abs(entries.std() - 0.3) < 5 * 0.3 / np.sqrt(18000)
    assert np.linalg.norm(start.imbalance) > 0.1


def test_seeds_make_starts_repeatable_and_different() -> None:
    problem = random_problem(3, 3, 0)
    for make in (
        lambda seed: aligned(problem, 0.1, seed=seed),
        lambda seed: balanced(problem, scale=0.1, width=3, seed=seed),
        lambda seed: gaussian(problem, scale=0.1, width=3, seed=seed),
    ):
        np.testing.assert_array_equal(make(1).U, make(1).U)
        assert np.abs(make(1).U - make(2).U).max() > 1e-3


@given(SIZES, SIZES, st.integers(0, 1000))
def test_orthonormal_matrices_are(rows: int, columns: int, seed: int) -> None:
    matrix = orthonormal(max(rows, columns), columns, np.random.default_rng(seed))
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(columns), atol=1e-14)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_gaussian_start_fits_every_parameterisation(model: Model) -> None:
    """Its names and shapes are those typed by hand; its entries have the standard deviation."""
    rng = np.random.default_rng(0)
    problem = model.problem(rng, 40, 30, 20)
    inner: int | list[int] = [20, 21] if model.name == "3 layers" else 20
    start = gaussian(problem, scale=0.3, width=inner, seed=4)
    found = problem.variables(start)
    expected = model.shapes(*problem.shape, 20)
    assert {name: value.shape for name, value in found.items()} == {
        name: shape if len(shape) == 2 else (*shape, 1) for name, shape in expected.items()
    }
    assert isinstance(start, Factors) == (set(expected) == {"U", "V"})
    entries = np.concatenate([value.ravel() for value in found.values()])
    assert abs(entries.std() - 0.3) < 5 * 0.3 / np.sqrt(2 * len(entries))
    assert len(np.unique(entries)) == len(entries)
    again = problem.variables(gaussian(problem, scale=0.3, width=inner, seed=4))
    for name, value in again.items():
        np.testing.assert_array_equal(value, found[name])
    integrate(problem, start, [0.0, 0.01])


def test_one_width_is_that_of_every_inner_space() -> None:
    found = LAYERS.variables(gaussian(LAYERS, scale=0.1, width=5, seed=0))
    assert [value.shape for value in found.values()] == [(5, 2), (5, 5), (2, 5)]


RATES = [(1.0, 2.0), (5.0, 0.2), (3.0, 3.0)]


@pytest.mark.parametrize("rates", RATES)
def test_balanced_is_what_the_rates_conserve(rates: tuple[float, float]) -> None:
    """UᵀU/η_U = VᵀV/η_V, with the operator of the Gaussian start; solve takes it."""
    problem = BilinearProblem(np.random.default_rng(2).standard_normal((4, 3)), rates=rates)
    start = balanced(problem, scale=0.4, width=3, seed=1)
    gap = start.U.T @ start.U / rates[0] - start.V.T @ start.V / rates[1]
    assert np.abs(gap).max() < 1e-14
    assert (np.linalg.norm(start.imbalance) < 1e-14) == (rates[0] == rates[1])
    uneven = gaussian(problem, scale=0.4, width=3, seed=1)
    np.testing.assert_allclose(start.operator, uneven.operator, atol=1e-14)
    run = solve(problem, start, [0.0, 1.0])
    assert run.source == "exact: M8"
    reached = integrate(problem, start, [1.0], rtol=1e-10).operator(0)
    np.testing.assert_allclose(run.operator(1), reached, atol=1e-8)


@pytest.mark.parametrize("rates", [(1.0, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("name", ["adapter", "layers"])
def test_two_factors_by_other_names_have_balanced_and_aligned_starts(
    name: str, rates: tuple[float, float]
) -> None:
    """Of an adapter the modes are those of T − Q₀: the closed form of aligned starts takes them."""
    rng = np.random.default_rng(3)
    target, base = rng.standard_normal((2, 4, 3))
    made = adapter(base) if name == "adapter" else layers(2)
    problem = BilinearProblem(target, parameterisation=made, rates=rates)
    product = ("B", "A") if name == "adapter" else ("W2", "W1")
    paces = dict(zip(made.variables, rates, strict=True))
    even = problem.variables(balanced(problem, scale=0.4, width=2, seed=1))
    first, second = even[product[0]], even[product[1]]
    assert (first.shape, second.shape) == ((4, 2), (2, 3))
    gap = first.T @ first / paces[product[0]] - second @ second.T / paces[product[1]]
    assert np.abs(gap).max() < 1e-14
    drawn = problem.variables(gaussian(problem, scale=0.4, width=2, seed=1))
    np.testing.assert_allclose(first @ second, drawn[product[0]] @ drawn[product[1]], atol=1e-14)
    assert solve(problem, problem.state(even), [1.0]).source == "exact: M8"
    straight = aligned(problem, 0.2, seed=1)
    source = "exact: M4" if rates[0] == rates[1] else "exact: M5"
    assert solve(problem, straight, [1.0]).source == source
    found = problem.variables(straight)
    left, _, right = np.linalg.svd(target - base if name == "adapter" else target)
    modes = left[:, :3].T @ found[product[0]] @ found[product[1]] @ right.T
    np.testing.assert_allclose(modes, 0.04 * np.eye(3), atol=1e-14)


def test_numbers_may_be_of_any_real_type() -> None:
    for one in (1, 1.0, np.float32(1), np.int64(1), np.array(1.0), Fraction(1)):
        problem = BilinearProblem(np.eye(2), decay=one, rates=[one, one])  # pyright: ignore
        assert (problem.decay, problem.rates) == (1.0, (1.0, 1.0))
        assert isinstance(problem.decay, float)


FINE = BilinearProblem(np.eye(2))
LAYERS = BilinearProblem(np.eye(2), parameterisation=layers(3))
GATES = BilinearProblem(np.eye(2), parameterisation=fixed_gates(np.ones(3)))
TIED = BilinearProblem(np.eye(2), parameterisation=tied())


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: BilinearProblem([[1.0, np.nan]]), InputError, r"target: entry \(0, 1\) is nan"),  # pyright: ignore[reportArgumentType]
        (lambda: BilinearProblem([[np.inf]]), InputError, r"target: entry \(0, 0\) is inf"),  # pyright: ignore[reportArgumentType]
        (lambda: BilinearProblem([[1j]]), InputError, "target: .*complex"),  # pyright: ignore[reportArgumentType]
        (lambda: BilinearProblem("abc"), InputError, "target: real numbers are expected"),  # pyright: ignore[reportArgumentType]
        (lambda: BilinearProblem([[1], [2, 3]]), InputError, "target: real numbers"),  # pyright: ignore[reportArgumentType]
        (lambda: BilinearProblem(np.ones(3)), ShapeError, r"target: got shape \(3,\)"),
        (lambda: BilinearProblem(np.ones((0, 3))), InputError, r"target: empty, shape \(0, 3\)"),
        (
            lambda: BilinearProblem(np.eye(3), Samples(np.ones((4, 3)), np.ones((4, 2)))),
            ShapeError,
            r"target: got shape \(3, 3\); \(2, 3\) is expected",
        ),
        (lambda: Samples(np.ones((4, 3)), np.ones((5, 3))), ShapeError, "got 4 and 5 rows"),
        (lambda: Factors(np.ones((4, 3)), np.ones((5, 2))), ShapeError, "U and V: got shapes"),
        (lambda: aligned(FINE, [1.0, 2.0, 3.0]), ShapeError, "a: got 3 entries"),
        (lambda: aligned(FINE, 1.0, [1.0]), ShapeError, "b: got 1 entries"),
        (lambda: aligned(FINE, np.nan), InputError, "a: got nan; .* one for each of the 2 modes"),
        (lambda: aligned(FINE, "0.1"), InputError, "a: got '0.1'"),  # pyright: ignore[reportArgumentType]
        (lambda: aligned(FINE, True), InputError, "a: got True"),
        (lambda: gaussian(FINE, scale="1", width=1, seed=0), InputError, "scale: got '1'"),  # pyright: ignore
        (lambda: gaussian(FINE, scale=True, width=1, seed=0), InputError, "scale: got True"),
        (
            lambda: gaussian(FINE, scale=np.ones(2), width=1, seed=0),  # pyright: ignore
            InputError,
            r"scale: got an array of shape \(2,\); a positive finite number",
        ),
        (lambda: gaussian(FINE, scale=1.0, width=[2], seed=0), ShapeError, "width: got a list of"),
        (
            lambda: gaussian(LAYERS, scale=1.0, width=[2, 3, 4], seed=0),
            ShapeError,
            "width: got a list of three ints; one whole number, or one for each of h1, h2, is",
        ),
        (
            lambda: gaussian(GATES, scale=1.0, width=2, seed=0),
            ShapeError,
            "width: got 2; 3 is expected beside gates",
        ),
        (
            lambda: balanced(LAYERS, scale=1.0, width=2, seed=0),
            InputError,
            r"problem: balanced starts .* 3 layers has the variables W1, W2, W3; pass gaussian",
        ),
        (lambda: aligned(GATES, 0.1), InputError, "problem: aligned starts .* W, V; pass gaussian"),
        (
            lambda: balanced(TIED, scale=1.0, width=2, seed=0),
            InputError,
            "problem: .* variables U;",
        ),
        (
            lambda: gaussian(np.eye(2), scale=1.0, width=1, seed=0),  # pyright: ignore
            InputError,
            r"problem: got an array of shape \(2, 2\); .* pass nm\.BilinearProblem\(target\)",
        ),
        (lambda: balanced(np.eye(2), scale=1.0, width=1, seed=0), InputError, "problem: got an"),  # pyright: ignore
        (lambda: aligned(np.eye(2), 1.0), InputError, "problem: got an array"),  # pyright: ignore
        (lambda: Factors(np.eye(2), np.eye(2)).check(np.eye(2)), InputError, "problem: got"),  # pyright: ignore
        (
            lambda: BilinearProblem(np.eye(2), parameterisation="gates"),  # pyright: ignore
            InputError,
            "parameterisation: got 'gates'; .* nonmixing.parameterisation",
        ),
        (
            lambda: BilinearProblem(np.eye(2), parameterisation=trained_gates),  # pyright: ignore
            InputError,
            "parameterisation: got the function trained_gates; ",
        ),
        (
            lambda: BilinearProblem(np.eye(2), (np.eye(2), np.eye(2))),  # pyright: ignore
            InputError,
            r"samples: got a tuple of two arrays; Samples\(inputs, outputs\) is expected",
        ),
        (
            lambda: BilinearProblem.from_samples(np.eye(2), np.eye(2), tolerance="1"),  # pyright: ignore
            InputError,
            "tolerance: got '1'; a finite number",
        ),
        (lambda: whiten(np.eye(3), "0.1"), InputError, "tolerance: got '0.1'"),  # pyright: ignore
        (
            lambda: FINE.variables((np.eye(2), np.eye(2))),  # pyright: ignore
            InputError,
            r"start: got a tuple of two arrays; pass nm\.Factors\(U, V\)$",
        ),
        (
            lambda: FINE.variables([[1.0, 2.0], [3.0, 4.0]]),  # pyright: ignore
            InputError,
            r"start: got a list of two lists; pass nm\.Factors\(U, V\)$",
        ),
        (
            lambda: LAYERS.variables([np.eye(2), np.eye(2), np.eye(2)]),  # pyright: ignore
            InputError,
            "start: got a list of three arrays; pass a mapping with W1, W2, W3, as 3 layers needs",
        ),
        (lambda: FINE.variables(None), InputError, "start: got None"),  # pyright: ignore
        (lambda: FINE.variables(Factors), InputError, "start: got the class Factors"),  # pyright: ignore
        (lambda: FINE.variables(FINE), InputError, "start: got a value of type BilinearProblem"),  # pyright: ignore
        (lambda: aligned(FINE, 1.0, width=0), InputError, "width: got 0"),
        (lambda: aligned(FINE, 1.0, seed=-1), InputError, "seed: got -1"),
        (lambda: gaussian(FINE, scale=0.0, width=1, seed=0), InputError, "scale: got 0"),
        (lambda: gaussian(FINE, scale=np.inf, width=1, seed=0), InputError, "scale: got inf"),
        (lambda: balanced(FINE, scale=1.0, width=1.5, seed=0), InputError, "width: got 1.5"),  # pyright: ignore[reportArgumentType]
        (lambda: balanced(FINE, scale=-1.0, width=1, seed=0), InputError, "scale: got -1"),
        (lambda: balanced(FINE, scale=1.0, width=1, seed=0.5), InputError, "seed: got 0.5"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_input_is_refused_in_one_line(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        build()
    assert "\n" not in str(caught.value)
