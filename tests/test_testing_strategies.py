"""The strategies: what they draw has the property they are named after, and shrinks to little."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from sympy import MatrixSymbol, symbols

from nonmixing.algebra.sympy_door import read
from nonmixing.errors import InputError, ShapeError
from nonmixing.testing import strategies as nst

QUICK = settings(max_examples=15)
SHRINK = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],  # without the one that explains, the longest by far
)

m, n, r = symbols("m n r")
U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)


def least(strategy: st.SearchStrategy[Any], wanted: Any) -> Any:
    return find(strategy, wanted, settings=SHRINK)


def seen(strategy: st.SearchStrategy[Any], count: int = 100) -> list[Any]:
    """Some draws, the same at every run."""
    drawn: list[Any] = []

    @settings(SHRINK, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def draw(value: Any) -> None:
        drawn.append(value)

    draw()
    return drawn


def close(left: Any, right: Any) -> bool:
    return bool(np.allclose(left, right, rtol=1e-12, atol=1e-12))


# --- problems -------------------------------------------------------------------------------------


@QUICK
@given(st.data())
def test_targets_have_the_spectrum(data):
    rows, columns = data.draw(nst.dimensions()), data.draw(nst.dimensions(2, 3))
    values = data.draw(nst.spectra(min(rows, columns)))
    target = data.draw(nst.targets(rows, columns, spectrum=values))
    assert target.shape == (rows, columns)
    assert close(np.linalg.svd(target, compute_uv=False), values)
    assert np.all(values > 0)
    assert np.all(np.diff(values) < 0)


@QUICK
@given(nst.targets(3, 4, spectrum=[2.0, 0.5]), nst.problems(), nst.spectra(3, distinct=False))
def test_targets_of_low_rank_and_problems(target, problem, values):
    assert close(np.linalg.svd(target, compute_uv=False), [2, 0.5, 0])
    assert 1 <= min(problem.shape)
    assert max(problem.shape) <= 4
    assert np.all(np.diff(values) <= 0)


@QUICK
@given(st.data())
def test_orthogonal(data):
    rows = data.draw(nst.dimensions())
    matrix = data.draw(nst.orthogonal(rows, data.draw(st.integers(1, rows))))
    assert close(matrix.T @ matrix, np.eye(matrix.shape[1]))


def test_what_is_drawn_differs():
    """Not only identities: rotations, signs and halves do come."""
    drawn = seen(nst.orthogonal(3))
    assert any(0 < abs(q[0, 1]) < 1 for q in drawn)
    assert any(q[0, 0] < 0 for q in drawn)
    assert any(np.count_nonzero(q) > 5 for q in drawn)
    spectra = seen(st.tuples(nst.spectra(2), nst.spectra(2, distinct=False)))
    assert any(distinct[0] % 1 == 0.5 for distinct, _ in spectra)
    assert any(equal[0] == equal[1] for _, equal in spectra)


def test_targets_shrink():
    assert least(nst.targets(), lambda t: True).tolist() == [[1]]
    assert least(nst.targets(), lambda t: min(t.shape) > 1).tolist() == [[2, 0], [0, 1]]
    assert least(nst.targets(2, 3), lambda t: True).tolist() == [[2, 0, 0], [0, 1, 0]]
    assert least(nst.spectra(3), lambda s: True).tolist() == [3, 2, 1]
    assert np.count_nonzero(least(nst.targets(2, 2), lambda t: t[0, 1] != 0)) == 2


# --- starts ---------------------------------------------------------------------------------------


@QUICK
@given(nst.with_start(nst.aligned_starts), nst.with_start(nst.balanced_starts))
def test_aligned_and_balanced(one, other):
    for problem, start in (one, other):
        start.check(problem)
        assert close(start.imbalance, 0)
        assert np.any(start.operator)
    problem, start = one
    modes = problem.svd.modes(start.operator)
    assert close(modes, np.diag(np.diag(modes)))
    assert np.all(np.diag(modes) > 0)


@QUICK
@given(
    nst.with_start(lambda problem: nst.aligned_starts(problem, equal=False, width=2)),
    nst.with_start(lambda problem: nst.balanced_starts(problem, width=st.integers(2, 3))),
)
def test_widths(one, other):
    assert one[1].width == 2
    assert 2 <= other[1].width <= 3
    modes = one[0].svd.modes(one[1].operator)
    assert close(modes, np.diag(np.diag(modes)))


@QUICK
@given(st.data())
def test_lambda_balanced(data):
    lam = data.draw(st.sampled_from([None, -1.5, 0.0, 3.0]))
    start = data.draw(
        nst.with_start(lambda problem: nst.lambda_balanced_starts(problem, imbalance=lam))
    )[1]
    found = start.imbalance[0, 0]
    assert close(start.imbalance, found * np.eye(start.width))
    if lam is not None:
        assert close(found, lam)
    else:
        assert abs(found) > 0.4


def test_generic_starts_are_neither():
    def neither(problem: Any, start: Any) -> bool:
        modes = problem.svd.modes(start.operator)
        return abs(start.imbalance).max() > 1 and abs(modes[0, 1]) > 1

    generic = nst.with_start(nst.generic_starts, nst.problems(2, 3))
    assert sum(neither(*drawn) for drawn in seen(generic)) > 20


def test_starts_shrink():
    problem, start = least(nst.with_start(nst.balanced_starts), lambda drawn: drawn[1].width == 2)
    assert problem.target.tolist() == [[1]]
    assert (start.U.tolist(), start.V.tolist()) == ([[1, 0]], [[1, 0]])
    single = least(nst.problems(1, 1), lambda drawn: True)
    for starts, u, v in (
        (nst.aligned_starts, 1, 1),
        (nst.lambda_balanced_starts, 1, 0),
        (nst.generic_starts, 0.5, 0),
    ):
        start = least(starts(single), lambda start: start.U.any())
        assert (start.U.tolist(), start.V.tolist()) == ([[u]], [[v]])


# --- expressions ----------------------------------------------------------------------------------


@QUICK
@given(st.data())
def test_expressions_are_typed(data):
    shape = data.draw(st.sampled_from([(m, n), (n, m), (m, r), (r, r), (n, n)]))
    drawn = data.draw(nst.expressions([U, V, T], shape))
    assert tuple(drawn.shape) == shape
    (expr,) = read([drawn]).exprs
    assert expr.shape == tuple(map(str, shape))
    scalar = data.draw(nst.expressions([U, V, T]))
    assert read([scalar]).exprs[0].is_scalar


def test_expressions_shrink():
    assert least(nst.expressions([U, V, T], (m, n)), lambda e: True) == T
    assert least(nst.expressions([U, V], (m, n)), lambda e: True) == U * V.T
    assert str(least(nst.expressions([U, V, T]), lambda e: True)) == "Trace(U.T*U)"


def test_every_operation_is_drawn():
    texts = [str(drawn) for drawn in seen(nst.expressions([U, V, T], (m, n)), 150)]
    for word in (" + ", "-", "*", "HadamardProduct", ".T", "2*", "/2"):
        assert any(word in text for text in texts), word
    texts = [str(drawn) for drawn in seen(nst.expressions([U, V, T]), 150)]
    for word in (" + ", ")*Trace", "Trace(T", "**2"):
        assert any(word in text for text in texts), word
    assert len(set(texts)) > 50


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input():
    def drawn(strategy: st.SearchStrategy[Any]) -> Any:
        return least(strategy, lambda value: True)

    problem = drawn(nst.problems(2, 3))
    with pytest.raises(InputError, match="symbols: none"):
        nst.expressions([])
    with pytest.raises(InputError, match=r"no product of U \(m, r\), V \(n, r\) .* is m x k"):
        nst.expressions([U, V], (m, symbols("k")))
    with pytest.raises(ShapeError, match="columns: got 3; with 2 rows"):
        drawn(nst.orthogonal(2, 3))
    with pytest.raises(ShapeError, match=r"spectrum: got shape \(3,\); at most 2"):
        drawn(nst.targets(2, 2, spectrum=[3.0, 2.0, 1.0]))
    with pytest.raises(ShapeError, match=r"width: got 3; with λ = 1 .* at most 2"):
        drawn(nst.lambda_balanced_starts(problem, imbalance=1.0, width=3))
    with pytest.raises(InputError, match="width: got 0"):
        drawn(nst.aligned_starts(problem, width=0))
    with pytest.raises(InputError, match="size: got 0"):
        drawn(nst.targets(0, 2))
