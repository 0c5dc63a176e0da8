"""`assert_implements`: user code against a formula, and what user code must not do."""

import operator
import re
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sympy import (
    DiagMatrix,
    Function,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    Q,
    Rational,
    Trace,
    symbols,
)

import nonmixing as nm
from nonmixing.errors import InputError
from nonmixing.testing import (
    InputChanged,
    NotDeterministic,
    NotFinite,
    WrongResult,
    WrongShape,
    assert_implements,
)
from nonmixing.testing.entries import Entry, NotExact, exact

m, n, r, eta = symbols("m n r eta")
SYMBOLS: Any = [
    MatrixSymbol("U", m, r),
    MatrixSymbol("V", n, r),
    MatrixSymbol("T", m, n),
    MatrixSymbol("A", n, n),
    MatrixSymbol("a", r, 1),
]
U, V, T, A, a = SYMBOLS
E = U * V.T - T
LOSS = nm.norm2(E) / 2

Array = NDArray[Any]


def gradient(U: Any, V: Any, T: Any) -> Any:
    return (U @ V.T - T) @ V


def gradients(U: Any, V: Any, T: Any) -> Any:
    residual = U @ V.T - T
    return residual @ V, residual.T @ U


def loss(U: Array, V: Array, T: Array) -> Any:
    return 0.5 * np.sum((U @ V.T - T) ** 2)


def message(function: Any, expr: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_implements(function, expr, *arguments, **options)
    return str(caught.value)


def pasted(text: str, **defined: Any) -> dict[str, Any]:
    _, _, code = text.partition("is defined, to be pasted:\n\n")
    assert code, text
    exec(compile(code, "pasted", "exec"), defined)
    return defined


def filled(out: Array, U: Array) -> Array:
    for i, row in enumerate(U):
        out[i] = 2 * row
    return out


# --- what is decided, and how ---------------------------------------------------------------------

EXACT = [
    (gradient, E * V, {}),
    (gradient, LOSS, {"gradient_in": U}),
    (gradients, LOSS, {"gradient_in": [U, V]}),
    (gradients, (E * V, E.T * U), {}),
    (loss, LOSS, {}),
    (lambda U, V, T: np.einsum("ij,ij->", U @ V.T - T, U @ V.T - T) / 2, LOSS, {}),
    (lambda U, V, T: np.trace((U @ V.T - T).T @ (U @ V.T - T)) * 0.5, LOSS, {}),
    (lambda U, V, T: np.mean((U @ V.T - T) ** 2) * T.size / 2, LOSS, {}),
    (lambda U, V, T: np.float64(0.5) * np.square(U @ V.T - T).sum(), LOSS, {}),
    (lambda X, Y, Z: (X @ Y.T - Z) @ Y, E * V, {"arguments": [U, V, T]}),
    (lambda U, eta, r: (U - eta * U / 4) * r, (1 - eta / 4) * r * U, {}),
    (lambda eta: eta**-2 + 1 / (1 - eta), eta**-2 + 1 / (1 - eta), {}),
    (lambda U, a, V: U @ np.diag(a) @ V.T, U * DiagMatrix(a) * V.T, {"flat": True}),
    (lambda U, a: U @ a, U * a, {"flat": True}),
    (lambda U, a, V: U @ np.diagflat(a) @ V.T, U * DiagMatrix(a) * V.T, {}),
    (lambda A: A.T, A, {"assuming": [Q.symmetric(A)]}),
    (lambda A: A.T @ A, Identity(n), {"arguments": [A], "assuming": [Q.orthogonal(A)]}),
    (lambda U, scale=2: scale * U, 2 * U, {}),
    (lambda U: 0.1 * U - U / 3, U * (Rational(1, 10) - Rational(1, 3)), {}),
    (lambda U: np.zeros(U.shape), 0 * U, {"arguments": [U]}),
    (lambda U: filled(np.zeros_like(U), U), 2 * U, {}),
    (lambda U: filled(np.empty_like(U), U), 2 * U, {}),
    (lambda U: filled(np.zeros(U.shape, dtype=U.dtype), U), 2 * U, {}),
    (lambda U: np.zeros(U.shape) + 2 * U, 2 * U, {}),
]


@pytest.mark.parametrize(("function", "expr", "options"), EXACT)
def test_exactly(function, expr, options):
    found = assert_implements(function, expr, exactly=True, **options)
    assert found.route == "prime field"
    assert (found.precision, found.tolerance) == ("exact numbers", 0)
    assert found.because == ""
    assert len(found.sizes) >= 2
    assert "exactly, modulo 2^61 - 1, on numpy arrays" in str(found)


def test_in_fractions_where_numbers_are_compared():
    found = assert_implements(lambda U: np.abs(U) ** 2, HadamardProduct(U, U))
    assert found.route == "fractions"
    assert "a prime field has no order" in found.because
    assert "exactly, in fractions" in str(found)


FLOATS = [
    (lambda U, V, T: np.linalg.norm(U @ V.T - T) ** 2 / 2, LOSS, "sqrt"),
    (lambda U, V, T: (1 / 3) * np.sum((U @ V.T - T) ** 2), LOSS * 2 / 3, "0.3333333333333333"),
    (lambda A: np.linalg.inv(A) @ A.T, A.inv() * A.T, "inv"),
    (lambda U: np.asarray(U, dtype=np.float64) * 2, 2 * U, "float"),
    (lambda U: filled(np.zeros(U.shape), U), 2 * U, "float"),
    (lambda U: operator.iadd(np.zeros(U.shape), 2 * U), 2 * U, "Cannot cast ufunc"),
]


@pytest.mark.parametrize(("function", "expr", "why"), FLOATS)
def test_in_floats(function, expr, why):
    found = assert_implements(function, expr)
    assert (found.route, found.arrays) == ("float64", "numpy")
    assert found.tolerance == pytest.approx(2**-26)
    assert why in found.because
    assert found.precision == "float64"
    assert str(found).startswith("agrees in float64, to 1.5e-08, on numpy arrays at ")
    text = message(function, expr, exactly=True)
    assert "agrees in float64 only; it cannot be run on exact numbers: " in text


def in_precision(kind: Any, error: float) -> Any:
    return lambda U: np.asarray(U, dtype=kind) * kind(2 * (1 + error))


@pytest.mark.parametrize(
    ("kind", "says", "passes", "fails"),
    [
        (np.float64, "float64, to 1.5e-08", 5e-9, 5e-8),
        (np.float32, "float32, to 3.5e-04", 1e-4, 1e-3),
        (np.float16, "float16, to 3.1e-02", 1e-2, 1e-1),
    ],
)
def test_each_precision_has_its_tolerance(kind, says, passes, fails):
    """Half of its digits, as `docs/testing.md` says."""
    found = assert_implements(in_precision(kind, passes), 2 * U)
    assert str(found).startswith(f"agrees in {says}, on numpy arrays at ")
    assert found.route == "float64"
    assert found.precision == np.dtype(kind).name
    assert found.tolerance == np.sqrt(np.finfo(kind).eps)
    text = message(in_precision(kind, fails), 2 * U)
    assert f" does not compute 2*U: compared in {says}, they differ at m = 1, r = 1\n" in text


def test_of_several_results_the_lowest_precision_is_named():
    def both(U: Any) -> Any:
        return in_precision(np.float64, 0)(U), in_precision(np.float32, 1e-4)(U)

    assert "in float32, to 3.5e-04" in str(assert_implements(both, (2 * U, 2 * U)))
    assert "compared in float64, to 1.5e-08, they differ" in message(both, (3 * U, 2 * U))
    assert "compared in float32, to 3.5e-04, they differ" in message(both, (2 * U, 3 * U))
    text = message(lambda U: both(U)[1], 2 * U, exactly=True)
    assert "agrees in float32 only; it cannot be run on exact numbers: " in text


def autograd(U: torch.Tensor, V: torch.Tensor, T: torch.Tensor) -> Any:
    moving = U.clone().requires_grad_()
    ((moving @ V.T - T) ** 2).sum().div(2).backward()
    return moving.grad


def test_torch():
    found = assert_implements(autograd, LOSS, gradient_in=U)
    assert (found.route, found.arrays) == ("float64", "torch")
    assert "clone" in found.because
    assert assert_implements(gradient, E * V, arrays="torch").arrays == "torch"
    assert assert_implements(gradient, E * V, arrays="numpy").route == "prime field"
    single = assert_implements(lambda U: torch.relu(U.float()) * 0 + U.float() * 3, 3 * U)
    assert single.tolerance == pytest.approx(2**-11.5)
    assert str(single).startswith("agrees in float32, to 3.5e-04, on torch arrays at ")


def test_another_gradient_in_torch():
    def doubled(U: Any, V: Any, T: Any) -> Any:
        return 2 * autograd(U, V, T)

    text = message(doubled, LOSS, gradient_in=U)
    assert "compared in float64, to 1.5e-08, they differ at m = 1, n = 1, r = 1" in text
    names = pasted(text, doubled=doubled)
    assert names["left"] == 2 * names["right"] != 0


# --- what does not compute the formula ------------------------------------------------------------


def test_another_gradient():
    def wrong(U: Any, V: Any, T: Any) -> Any:
        residual = U @ V.T - T
        return residual @ V, -residual.T @ U

    text = message(wrong, LOSS, gradient_in=[U, V])
    assert re.match(
        r"wrong does not compute grad\(Trace\(.*\)/2, V\): compared exactly, "
        r"they differ at m = 1, n = 1, r = 1\n"
        r"  left          wrong\(U, V, T\)\[1\], which is \[\[.*\]\]\n"
        r"  right         grad\(.*, V\), which is \[\[.*\]\]\n"
        r"  left - right  \[\[.*\]\]\n"
        r"  right, again  -T\.T @ U \+ V @ U\.T @ U\n",
        text,
    ), text
    names = pasted(text, wrong=wrong)
    assert names["left"] == -names["right"] != 0


@pytest.mark.parametrize(
    ("function", "expr", "options"),
    [
        (lambda U, V, T: gradient(U, V, T) + 1e-9 * U, E * V, {}),
        (lambda U, V, T: 0.50001 * np.sum((U @ V.T - T) ** 2), LOSS, {}),
        (lambda U, V, T: np.linalg.norm(U @ V.T - T) / 2, LOSS, {}),
        (lambda U: np.abs(U), U, {}),
        (lambda A: A.T, A, {}),
        (lambda A: A.T @ A, Identity(n), {"arguments": [A]}),
        (lambda U, a: U * a, U * DiagMatrix(a), {"flat": True, "arguments": [U, a]}),
        (lambda U, a, V: U @ np.diag(a**2) @ V.T, U * DiagMatrix(a) * V.T, {"flat": True}),
        (lambda a: a**2, a, {"flat": True}),
        (lambda eta: eta**2, eta, {}),
        (lambda U, eta, r: r * U + eta * U, eta * U, {"arguments": [U, eta, r]}),
    ],
)
def test_differences_are_found_and_can_be_pasted(function, expr, options):
    if expr == U * DiagMatrix(a):  # NumPy broadcasts along rows, which is right
        assert assert_implements(function, expr, **options)
        return
    text = message(function, expr, **options)
    names = pasted(text, function=function)
    assert np.any(names["left"] != names["right"])


def test_counterexamples_are_small():
    text = message(lambda A: A, A.T)
    assert "they differ at n = 2\n" in text
    assert sorted(np.abs(pasted(text, function=lambda A: A)["A"]).ravel()) == [0, 0, 0, 1]


# --- what user code must not do -------------------------------------------------------------------


def moved(u: Array, v: Array, t: Array) -> Array:
    u -= t @ v
    return u


def written(U: Array) -> Array:
    U[0, 0] = 0.12345678912345
    return U


NOISE = np.random.default_rng(0)
STATE: list[int] = []


def stateful(U: Array) -> Array:
    STATE.append(1)
    return U * len(STATE)


@pytest.mark.parametrize(
    ("function", "expr", "error", "says"),
    [
        (
            lambda U, V, T: moved(U, V, T),
            U - T * V,
            InputChanged,
            "it changes its argument 1 at m = ",
        ),
        (written, U, InputChanged, "written: it changes its argument 1"),
        (lambda U, V, T: gradient(U, V, T).T, E * V, WrongShape, "is expected; is it transposed?"),
        (lambda U, V, T: gradient(U, V, T), LOSS, WrongShape, r"returned an array of shape"),
        (lambda U, a: (U @ a)[:, 0], U * a, WrongShape, "flat=True passes columns"),
        (lambda U: (U, U), U, WrongShape, r"of shape \(2, "),
        (lambda U: None, U, WrongResult, "returned NoneType; an array of real numbers"),
        (lambda U: "no", U, WrongResult, "returned str"),
        (lambda U: U.astype(complex), U, WrongResult, "returned ndarray"),
        (lambda U: U + np.linalg.norm(U) * np.nan, U, NotFinite, r"entry \(0, 0\) is nan at m = "),
        (lambda U: np.exp(1e4 + 0 * U.astype(float)), U, NotFinite, "is inf"),
        (lambda U: U + NOISE.normal(size=U.shape), U, NotDeterministic, "two calls .* differ"),
        (stateful, U, NotDeterministic, "stateful: two calls"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_user_code_that_is_refused(function, expr, error, says):
    with pytest.raises(error, match=says):
        assert_implements(function, expr)
    assert issubclass(error, InputError)


def test_several_results():
    with pytest.raises(WrongShape, match=r"returned one ndarray at .*; a tuple of 2 arrays"):
        assert_implements(gradient, LOSS, gradient_in=[U, V])
    with pytest.raises(WrongShape, match=r"returned 2 arrays at .*; 3 are expected"):
        assert_implements(gradients, (E * V, E.T * U, E), arguments=[U, V, T])


def test_an_error_of_user_code_is_its_own():
    def broken(U: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        assert_implements(broken, U, arrays="numpy")
    assert caught.value.__notes__ == [
        f"(broken was called with float64 numpy arrays at {_sizes(caught.value.__notes__[0])})"
    ]


def _sizes(note: str) -> str:
    return note.rpartition(" at ")[2].removesuffix(")")


def test_requests_that_make_no_sense():
    with pytest.raises(InputError, match=r"the parameter X of .* is no symbol .*\(U, m, r\)"):
        assert_implements(lambda X: X, U)
    with pytest.raises(InputError, match=r"arguments: U\*V\.T is no symbol"):
        assert_implements(lambda X: X, E, [U * V.T])
    with pytest.raises(InputError, match="cannot be found out"):
        assert_implements(max, U)
    with pytest.raises(InputError, match="the gradient of one scalar"):
        assert_implements(gradient, (LOSS, LOSS), gradient_in=U)
    with pytest.raises(InputError, match="phi is an opaque function"):
        assert_implements(lambda U: U, U.applyfunc(Function("phi")))
    with pytest.raises(InputError, match="is not in the language"):
        assert_implements(lambda A: A, A * cast(Any, Function("f"))(eta))


# --- exact entries --------------------------------------------------------------------------------


@pytest.mark.parametrize("prime", [None, 101])
def test_entries_are_a_field(prime):
    x, y = Entry(7, prime), Entry(Fraction(3, 5), prime)
    assert (x + y) - y == x
    assert (x * y) / y == x
    assert 2 * x - x == x == 0.5 * x + x / 2
    assert 1 / x == x**-1
    assert (1 - x) + (x - 1) == 0
    assert x**3 == x * x * x
    assert -(+x) == -7
    assert x.conjugate() == x
    assert hash(x) == hash(Entry(7, prime))
    assert bool(x)
    assert not Entry(0, prime)
    assert repr(x) == "7"
    with pytest.raises(ZeroDivisionError):
        _ = x / 0
    with pytest.raises(NotExact):
        _ = x**0.5
    with pytest.raises(TypeError):
        float(x)  # pyright: ignore[reportArgumentType]


def test_order():
    x: Any = Entry(Fraction(1, 2))
    halves = np.array([0, x, 1], dtype=object)
    assert (x < halves).tolist() == [False, False, True]
    assert (x == halves).tolist() == [False, True, False]
    assert (x * halves).tolist() == [0, Fraction(1, 4), x] == (halves * x).tolist()
    assert 0 < x < 1
    assert x <= 0.5 <= x
    assert abs(-x) == x
    for compare in (lambda y: y < 1, lambda y: y >= 1, abs):
        with pytest.raises(NotExact, match="no order"):
            compare(Entry(1, 7))


def test_a_float_is_the_decimal_that_was_typed():
    assert exact(0.1) == Fraction(1, 10)
    assert exact(-2.5e-7) == Fraction(-1, 4_000_000)
    assert exact(3.0) == 3
    assert exact(np.int64(4)) == 4
    for rounded in (1 / 3, 0.1 + 0.2, float("nan"), float("inf"), 2.0**60 + 2**20, "1", None, 1j):
        with pytest.raises(NotExact):
            exact(rounded)


def test_trace_is_exact():
    assert assert_implements(lambda A: np.trace(A), Trace(A)).route == "prime field"
