"""SymPy in and out: the same verdicts through both doors, and gradients against complex steps.

Among the losses are those for which SymPy's own `diff` is silently wrong (sums of traces) or
raises (degree four).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from algebra.declare import statement as text_statement
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Q, Trace, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix

from nonmixing.algebra import decide
from nonmixing.algebra.sympy_door import equation, inner, norm2, read, write
from nonmixing.errors import InputError, ShapeError
from nonmixing.flow import GradientFlow, gradient

m, n, r = (sp.Symbol(name) for name in "mnr")
a, b = sp.Symbol("a"), sp.Symbol("b")


def matrix(name: str, rows: Any, cols: Any) -> Any:
    """A matrix symbol; SymPy carries no usable types for its matrix expressions."""
    return MatrixSymbol(name, rows, cols)


X, Y, S = (matrix(name, n, n) for name in "XYS")
A, B, C = (matrix(name, m, n) for name in "ABC")
U, V = matrix("U", m, r), matrix("V", n, r)
x, y, z = (matrix(name, n, 1) for name in "xyz")
w = matrix("w", 1, n)


def verdict(*sides: Any, **more: Any) -> str:
    return decide(equation(*sides, **more)).verdict


BOTH: list[tuple[Any, Any, str, str]] = [
    ((A * X).T, X.T * A.T, "(A @ X).T == X.T @ A.T", "proved"),
    (X * Y, Y * X, "X @ Y == Y @ X", "refuted"),
    (Trace(X * Y), Trace(Y * X), "tr(X @ Y) == tr(Y @ X)", "proved"),
    (Trace(X * Y), Trace(X) * Trace(Y), "tr(X @ Y) == tr(X) * tr(Y)", "refuted"),
    (norm2(A), Trace(A * A.T), "norm2(A) == tr(A @ A.T)", "proved"),
    (inner(A, B), Trace(B.T * A), "inner(A, B) == tr(B.T @ A)", "proved"),
    (a * X + b * X, (a + b) * X, "a * X + b * X == (a + b) * X", "proved"),
    (X / a, X / b, "X / a == X / b", "refuted"),
    (X**2 * X, X * X**2, "X @ X @ X == X @ (X @ X)", "proved"),
    (HadamardProduct(A, B), HadamardProduct(B, A), "A * B == B * A", "proved"),
    (HadamardProduct(X, Y), X * Y, "X * Y == X @ Y", "refuted"),
    (DiagMatrix(x) * y, HadamardProduct(x, y), "diag(x) @ y == x * y", "proved"),
    (DiagonalMatrix(X), DiagonalMatrix(X.T), "diagpart(X) == diagpart(X.T)", "proved"),
    (DiagonalMatrix(X), X, "diagpart(X) == X", "refuted"),
    (X * Identity(n), X, "X @ eye(n) == X", "proved"),
    (X - X, ZeroMatrix(n, n), "X - X == zeros(n, n)", "proved"),
    (OneMatrix(n, n) * X, X * OneMatrix(n, n), "ones(n,n) @ X == X @ ones(n,n)", "refuted"),
    (n * X, Trace(Identity(n)) * X, "n * X == tr(eye(n)) * X", "proved"),
    (x.T * X * y, y.T * X.T * x, "x.T @ X @ y == y.T @ X.T @ x", "proved"),
    (Trace(x * y.T * X), Trace(y.T * X * x), "tr(x @ y.T @ X) == y.T @ X @ x", "proved"),
    (X / 3, X * sp.Rational(1, 3), "X / 3 == 1 / 3 * X", "proved"),
    (sp.Float("0.1") * X, X / 10, "0.1 * X == X / 10", "proved"),
    (X, X.T, "X == X.T", "refuted"),
    (X, 0, "X == 0", "refuted"),
    ((X + Y) ** 2, X**2 + 2 * X * Y + Y**2, "(X+Y) @ (X+Y) == X@X + 2*X@Y + Y@Y", "refuted"),
    (X.T.T, X, "X.T.T == X", "proved"),
]


@pytest.mark.parametrize(("left", "right", "text", "expected"), BOTH)
def test_both_doors_agree(left: Any, right: Any, text: str, expected: str) -> None:
    by_text = decide(text_statement(text))
    by_sympy = decide(equation(left, right))
    assert by_text.verdict == by_sympy.verdict == expected
    assert by_text.scope == by_sympy.scope
    if expected == "refuted" and right != 0:
        assert by_text.difference == by_sympy.difference


def test_equations_and_the_truth_they_may_have_become() -> None:
    assert verdict(sp.Eq(A * B.T, A * B.T)) == "proved"  # SymPy makes `true` of it
    assert verdict(sp.Eq(A * B.T, B * A.T)) == "refuted"
    assert verdict(True) == "proved"
    with pytest.raises(InputError, match="False"):
        verdict(sp.false)


def test_predicates_are_kinds() -> None:
    assert verdict(X.T, X, assuming=[Q.symmetric(X)]) == "proved"
    assert verdict(X * Y, Y * X, assuming=[Q.diagonal(X), Q.diagonal(Y)]) == "proved"
    assert verdict(X.T * X, Identity(n), assuming=[Q.orthogonal(X)]) == "proved"
    assert verdict(X * X.inv(), Identity(n), assuming=[Q.invertible(X)]) == "proved"
    assert verdict((X * Y).inv(), Y.inv() * X.inv()) == "proved"
    assert verdict(X**-1 * X, Identity(n)) == "proved"
    assert verdict(X**-2, X.inv() * X.inv()) == "proved"


def test_equations_are_hypotheses() -> None:
    balanced = sp.Eq(U.T * U, V.T * V)
    assert verdict(Trace((U.T * U) ** 2), Trace((V.T * V) ** 2), assuming=[balanced]) == "proved"
    assert verdict(U.T * U, V.T * V, assuming=[]) == "refuted"
    assert verdict(X, Y, assuming=[sp.Eq(X, Y)]) == "proved"


@pytest.mark.parametrize(
    ("left", "right", "named"),
    [
        (X.det(), 1, "Determinant"),
        (sp.sin(a) * X, X, "sin"),
        (X**a, X, "a"),
        (sp.sqrt(2) * X, X, "1/2"),
        (X[0, 0], 1, "X[0, 0]"),
        (sp.Matrix([[1, 2], [3, 4]]), MatrixSymbol("M", 2, 2), "Matrix"),
        (MatrixSymbol("M", m - n, n), A, "dimension"),
        (X, A, "m x n"),
        (a / Trace(X), b, "tr(X)"),
        (sp.I * X, X, "I"),
        (sp.pi * X, X, "pi"),
    ],
)
def test_what_is_outside_is_refused_by_name(left: Any, right: Any, named: str) -> None:
    with pytest.raises(InputError) as caught:
        verdict(left, right)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_assumptions_are_refused_by_name() -> None:
    for item in (Q.positive_definite(X), Q.symmetric(X + Y), sp.false, "X == Y"):
        with pytest.raises(InputError, match="assuming"):
            verdict(X, Y, assuming=[item])
    with pytest.raises(ShapeError, match="square"):
        verdict(A, B, assuming=[Q.symmetric(A)])


@pytest.mark.parametrize("name", ["a", "n"])
def test_one_name_for_two_things_is_refused(name: str) -> None:
    twice = MatrixSymbol(name, n, n)
    with pytest.raises(InputError, match=name):
        verdict(Trace(twice) * X, sp.Symbol(name) * X)


def test_one_name_with_two_shapes_is_refused() -> None:
    with pytest.raises(ShapeError, match="X"):
        verdict(MatrixSymbol("X", n, m) * C, X)


ROUND = [
    *(side for left, right, _, _ in BOTH for side in (left, right) if side != 0),
    Trace(X * Y) * X + Trace(X) ** 2 * Y,
    a**2 * Trace(X) + b,
    Trace(x.T * y) * X,
    (x.T * y) * (y.T * X * x),
    Trace(x * x.T) ** 2,
    X * x * y.T * a / (a + b),
    w * X * w.T,
    w.T * w,
]


@pytest.mark.parametrize("expr", ROUND)
def test_reading_and_writing_change_nothing(expr: Any) -> None:
    (once,) = read([expr]).exprs
    again = write(once)
    assert shape(again) == shape(expr)
    assert verdict(again, expr) == "proved"


def shape(expr: Any) -> tuple[Any, Any]:
    rows, cols = getattr(expr, "shape", ()) or (1, 1)
    return rows, cols


# --- gradients ------------------------------------------------------------------------------------

SIZES = {m: 4, n: 3, r: 2}
LOSSES: list[tuple[Any, Any]] = [
    (Trace(A * B.T), A),
    (Trace(X * Y) + Trace(X), X),
    (norm2(A - U * V.T) + norm2(U), U),
    (norm2(A - U * V.T) / 2 + norm2(V) / 2 + Trace(V.T * V), V),
    (Trace((U.T * U) * (U.T * U)), U),
    (Trace((A.T * A - X) ** 2), A),
    (Trace(X) ** 3, X),
    (Trace(X) * Trace(X * Y), X),
    (Trace(x.T * X * x), x),
    (Trace(x.T * X * x), X),
    (Trace(x.T * y) ** 2, x),
    (Trace(x.T * X * x) ** 2, X),
    (Trace(x.T * y) * Trace(x.T * X * x), x),
    (Trace(x * x.T * x * x.T), x),
    (Trace(HadamardProduct(X, X) * Y), X),
    (Trace(DiagMatrix(x) * X * DiagMatrix(x)), x),
    (Trace(X**4), X),
    (Trace(w * X * w.T), w),
    (Trace(w * x) ** 2, w),
    (a**3 * Trace(X) + a * b, a),
    (a * Trace(x.T * X * x) + a**2 * Trace(X), a),
    (Trace(Y), X),
    (norm2(X) * norm2(X - Y), X),
]


def value(expr: Any, at: dict[str, Any]) -> Any:
    """A SymPy expression as a complex NumPy array: an evaluator of this test's own."""
    if isinstance(expr, MatrixSymbol):
        return at[expr.name]
    args = [value(arg, at) for arg in expr.args if isinstance(arg, sp.Basic)]
    sizes: Any = [SIZES.get(s, s) for s in getattr(expr, "shape", ())]
    match type(expr).__name__:
        case "Symbol":
            return at[expr.name] if expr.name in at else SIZES[expr]
        case "Add" | "MatAdd":
            return sum(args[1:], args[0])
        case "Mul" | "MatMul":
            return multiplied(args)
        case "Transpose":
            return args[0].T
        case "Trace":
            return np.trace(args[0]) if np.ndim(args[0]) else args[0]
        case "MatPow":
            return np.linalg.matrix_power(args[0], int(expr.args[1]))
        case "Pow":
            base = args[0].item() if np.ndim(args[0]) else args[0]
            return base ** int(expr.args[1])
        case "HadamardProduct":
            return args[0] * args[1]
        case "HadamardPower":
            return args[0] ** int(expr.args[1])
        case "DiagMatrix":
            return np.diag(args[0].ravel())
        case "DiagonalMatrix":
            return np.diag(np.diag(args[0]))
        case "Identity":
            return np.eye(int(sizes[0]))
        case "OneMatrix":
            return np.ones([int(s) for s in sizes])
        case "ZeroMatrix":
            return np.zeros([int(s) for s in sizes])
        case _:
            assert expr.is_number, type(expr)
            return float(expr)


def multiplied(args: list[Any]) -> Any:
    result: Any = 1.0
    for arg in args:
        both = np.ndim(result) and np.ndim(arg)
        result = result @ arg if both else result * arg
    return result


def state(rng: np.random.Generator) -> dict[str, Any]:
    symbols = [X, Y, S, A, B, U, V, C, x, y, z, w]
    at: dict[str, Any] = {
        s.name: rng.normal(size=[int(str(SIZES.get(d, d))) for d in s.shape]) for s in symbols
    }
    return at | {"a": 0.7, "b": -1.3}


def complex_step(loss: Any, name: str, at: dict[str, Any]) -> Any:
    """The gradient, one imaginary step of 1e-30 an entry: exact to rounding."""
    base = np.atleast_2d(at[name])
    result = np.zeros(base.shape)
    for ij in np.ndindex(base.shape):
        moved = base.astype(complex)
        moved[ij] += 1e-30j
        point = moved if np.ndim(at[name]) else moved[0, 0]
        result[ij] = np.imag(np.squeeze(value(loss, at | {name: point}))) / 1e-30
    return result


@pytest.mark.parametrize(("loss", "variable"), LOSSES)
def test_gradient_agrees_with_a_complex_step(loss: Any, variable: Any) -> None:
    at = state(np.random.default_rng(0))
    found = gradient(loss, variable)
    expected = complex_step(loss, variable.name, at)
    assert shape(found) == shape(variable)
    np.testing.assert_allclose(
        np.broadcast_to(value(found, at), expected.shape), expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "expr",
    [
        U * V.T,
        U.T * U - V.T * V,
        Trace(U.T * U),
        norm2(U * V.T - C),
        Trace(U.T * U) * U,
        Trace(U.T * U) ** 2,
        Trace(x.T * V * V.T * x) + Trace(U.T * U),
        x.T * V * V.T * x,
        Trace(x.T * V * V.T * x) * V,
        HadamardProduct(U * V.T, C),
        a * U + b * U * V.T * V,
    ],
)
def test_derivative_along_the_flow(expr: Any) -> None:
    flow = GradientFlow(norm2(U * V.T - C) / 2, [U, V])
    at = state(np.random.default_rng(2))
    found = flow.derivative(expr)
    assert shape(found) == shape(expr)
    gap = at["U"] @ at["V"].T - at["C"]
    step = 1e-30j
    moved = at | {"U": at["U"] - step * gap @ at["V"], "V": at["V"] - step * gap.T @ at["U"]}
    expected = np.imag(value(expr, moved)) / 1e-30
    np.testing.assert_allclose(value(found, at), expected, rtol=1e-12, atol=1e-12)


def test_random_trace_polynomials_agree_with_a_complex_step() -> None:
    rng = random.Random(4)
    letters = [X, X.T, Y, Y.T, x * y.T, X]
    for seed in range(12):
        loss = sum(
            rng.choice([1, -2, sp.Rational(1, 3)])
            * Trace(sp.MatMul(*(rng.choice(letters) for _ in range(rng.randint(1, 4)))).doit())
            for _ in range(rng.randint(1, 3))
        )
        if rng.random() < 0.3:
            loss = loss * Trace(X * Y)
        at = state(np.random.default_rng(seed))
        found = value(gradient(loss, X), at)
        expected = complex_step(loss, "X", at)
        np.testing.assert_allclose(
            np.broadcast_to(found, expected.shape), expected, rtol=1e-11, atol=1e-11
        )
