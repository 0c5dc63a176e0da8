"""Expressions from text: what is read, and one clear line for everything that is not."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from algebra.declare import in_a_line, statement, verdict

from nonmixing.algebra.expr import Expr
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.text import FUNCTIONS, Scope, parse
from nonmixing.errors import InputError, ShapeError

MATRICES = {"X": ("n", "n"), "A": ("m", "n"), "x": ("n", 1), "u": ("m", 1)}
SCOPE = Scope(Setting(MATRICES, {}, frozenset({"a", "b"})), {})


def read(text: str) -> Expr:
    return parse(text, SCOPE, "here")


def refused(text: str) -> str:
    """The message with which an expression is refused: one line that says where."""
    with pytest.raises(InputError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("here: ")
    assert "\n" not in message
    assert len(message) < 400
    return message.removeprefix("here: ")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("B", "'B'"),
        ("X @ B", "'B'"),
        ("f(X)", "'f'"),
        ("exp(X)", "'exp'"),
        ("__import__('os')", "'__import__'"),
        ("eval('1')", "'eval'"),
        ("X.shape", ".shape"),
        ("X.__class__", ".__class__"),
        ("X.T.T.inv", ".inv"),
        ("np.dot(X, X)", "np.dot"),
        ("X.sum()", "X.sum"),
        ("(lambda: X)()", "lambda"),
        ("lambda t: t", "lambda"),
        ("[X for i in X]", "for i in X"),
        ("{X: X}", "{X: X}"),
        ("[X, X]", "[X, X]"),
        ("(X, X)", "(X, X)"),
        ("(y := X)", "y := X"),
        ("X[0]", "X[0]"),
        ("X[0, 1:]", "X[0, 1:]"),
        ("X if a else X", "X if a else X"),
        ("not X", "not X"),
        ("X and X", "X and X"),
        ("~X", "~X"),
        ("*X", "X"),
        ("'X'", "'X'"),
        ("b'X'", "b'X'"),
        ("f'{X}'", "f'{X}'"),
        ("1j", "1j"),
        ("True * X", "True"),
        ("None", "None"),
        ("...", "..."),
        ("await X", "X"),
        ("yield X", "X"),
        ("X == X", "=="),
        ("X < X", "comparison"),
        ("X // 2", "FloorDiv"),
        ("X % 2", "Mod"),
        ("X << 1", "LShift"),
        ("X | X", "BitOr"),
        ("X ^ 2", "write X.T"),
        ("X; X", "X; X"),
        ("X = X", "X = X"),
        ("import os", "import os"),
        ("X +", "X +"),
        ("(X", "(X"),
        ("X)", "X)"),
        ("X X", "X X"),
        ("X.T'", "X.T"),
        ("$X", "$X"),
        ("X @ \\", "X @"),
        ("X ** a", "a"),
        ("X ** 0.5", "0.5"),
        ("X ** X", "X"),
        ("X ** 65", "65"),
        ("X ** (2 ** 40)", "2 ** 40"),
        ("2 ** 2 ** 2 ** 2 ** 2", "2 ** 2"),
        ("tr", "tr"),
        ("tr + X", "tr"),
        ("tr()", "tr"),
        ("tr(X, X)", "tr"),
        ("tr(X=X)", "tr"),
        ("tr(*X)", "tr"),
        ("tr(**X)", "tr"),
        ("inner(X)", "inner"),
        ("D(X, X)", "D"),
        ("eye()", "eye"),
        ("eye(n, n)", "eye"),
        ("eye(0)", "eye(0)"),
        ("eye(-1)", "eye"),
        ("eye(n - 1)", "n - 1"),
        ("eye(tr(X))", "tr(X)"),
        ("eye(2.0)", "2.0"),
        ("eye(True)", "True"),
        ("eye(X)", "X"),
        ("eye(a)", "a"),
        ("zeros(n, X)", "X"),
        ("grad(tr(X), X @ X)", "X @ X"),
        ("grad(tr(X), 2)", "2"),
        ("D(X, X.T, X)", "X.T"),
        ("d(X)", "flow"),
        ("after(X)", "step"),
        ("X / 0", "zero"),
        ("X / tr(X)", "tr(X)"),
        ("a / sum(X)", "sum(X)"),
        ("1e999", "1e999"),
        ("1e-999", "1e-999"),
        ("0." + "1" * 100, "0.1111"),
        ("9" * 5000, "9999"),
        ("", "''"),
        ("   ", "''"),
        ("#", "#"),
        ("\x00", "x00"),
        ("λx", "'λx'"),
        ("X @ \u00b2", "\u00b2"),
    ],
)
def test_refused_by_name(text: str, named: str) -> None:
    assert named in refused(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("X @ A", ["X (n x n)", "A (m x n)", "n", "m"]),
        ("X + A", ["X", "(n x n)", "A", "(m x n)"]),
        ("X - x", ["X", "(n x n)", "x", "(n x 1)"]),
        ("X + 1", ["X", "(n x n)", "1", "(1 x 1)"]),
        ("1 - X", ["X", "(n x n)"]),
        ("X * A", ["X (n x n)", "A (m x n)", "elementwise"]),
        ("X * x", ["X (n x n)", "x (n x 1)", "elementwise"]),
        ("x @ x", ["x (n x 1)", "n"]),
        ("x.T @ u", ["x.T (1 x n)", "u (m x 1)"]),
        ("inner(X, A)", ["inner", "X (n x n)", "A (m x n)"]),
        ("tr(A)", ["tr", "A (m x n)", "square"]),
        ("sym(A)", ["sym", "A (m x n)"]),
        ("skew(x)", ["skew", "x (n x 1)"]),
        ("diagpart(A)", ["diagpart", "A (m x n)"]),
        ("inv(A)", ["inv", "A (m x n)"]),
        ("diag(X)", ["diag", "X (n x n)"]),
        ("diag(x.T)", ["diag", "x.T (1 x n)"]),
        ("grad(X, X)", ["grad", "X (n x n)", "scalar"]),
        ("D(X, X, x)", ["X (n x n)", "x (n x 1)"]),
        ("X ** -1", ["X (n x n)", "inv"]),
        ("a / X", ["X (n x n)", "inv"]),
        ("X / X", ["X (n x n)"]),
        ("(A @ X + A @ X @ X).T @ X", ["(n x m)", "X (n x n)"]),
    ],
)
def test_shapes_that_do_not_fit_name_operands_and_dimensions(text: str, parts: list[str]) -> None:
    with pytest.raises(ShapeError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("here: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_long_operand_is_shortened_in_the_message() -> None:
    long = "(" + " + ".join(["X"] * 100) + ")"
    assert len(refused(f"{long} @ A")) < 300


def test_unknown_function_lists_what_there_is() -> None:
    message = refused("softmax(X)")
    assert "'softmax'" in message
    for name in ("tr", "norm2", "inner", "diagpart", "grad", "eye", "sum"):
        assert name in FUNCTIONS
        assert name in message


def test_unknown_name_lists_what_is_declared() -> None:
    message = refused("W @ X")
    for name in MATRICES:
        assert name in message


def test_nothing_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("print(1)", "__builtins__", "().__class__.__bases__", "open('/etc/passwd')"):
        refused(text)
    assert capsys.readouterr().out == ""


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("0.30000000000000004", Fraction(30000000000000004, 10**17)),
        (
            "0.1234567890123456789012345678901234567890",
            Fraction(1234567890123456789012345678901234567890, 10**40),
        ),
        ("1e3", Fraction(1000)),
        ("1e-3", Fraction(1, 1000)),
        ("2.5E2", Fraction(250)),
        ("1_000.25", Fraction(100025, 100)),
        ("1_000", Fraction(1000)),
        ("0x10", Fraction(16)),
        ("1e-300", Fraction(1, 10**300)),
        ("123456789012345678901234567890", Fraction(123456789012345678901234567890)),
    ],
)
def test_numbers_are_exact(text: str, value: Fraction) -> None:
    assert read(text).data == value
    assert read(f"-{text}").data == -value


def test_decimals_after_other_characters_of_several_bytes() -> None:
    """The number's own text is found by bytes, not characters."""
    scope = Scope(Setting({"Ψ": ("n", "n")}, {}, frozenset({"η"})), {})
    expr = parse("η * Ψ + 0.1 * Ψ", scope, "here")
    assert expr.args[1].args[0].data == Fraction(1, 10)


def test_decimals_on_a_later_line() -> None:
    expr = parse("(X +\n   0.1 * X)", SCOPE, "here")
    assert expr.args[1].args[0].data == Fraction(1, 10)


# --- reading as Python reads ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("X @ X * X", "(X @ X) * X"),
        ("X * X @ X", "(X * X) @ X"),
        ("-X ** 2", "-(X ** 2)"),
        ("-X @ X", "(-X) @ X"),
        ("X @ X.T ** 2", "X @ (X.T ** 2)"),
        ("a / b * X", "(a / b) * X"),
        ("X / a / b", "(X / a) / b"),
        ("X - X - X", "(X - X) - X"),
        ("2 * X @ X", "(2 * X) @ X"),
        ("+X", "X"),
        ("--X", "X"),
    ],
)
def test_binding_as_in_python(one: str, other: str) -> None:
    assert ast.dump(ast.parse(one)) == ast.dump(ast.parse(other)) or one in ("+X", "--X")
    assert verdict(f"{one} == {other}") == "proved"


def test_scalars_and_matrices_of_one_row_and_column() -> None:
    assert verdict("x.T @ y * X == tr(x.T @ y) * X") == "proved"
    assert verdict("X * (x.T @ y) == X @ (y.T @ x * eye(n))") == "proved"


def test_a_literal_zero_fits_every_shape_and_nothing_else_does() -> None:
    for text in ("X + 0", "0 + X", "X - 0", "0 - X", "X + 0.0"):
        assert read(text).shape == ("n", "n")
    refused("X + 1")
    refused("X + (1 - 1)")


@pytest.mark.parametrize("text", ["X +\n  X", "X\n  + X", "X @\n\n X", "X -\n# nothing\n X"])
def test_an_expression_may_go_over_several_lines(text: str) -> None:
    assert read(text).shape == ("n", "n")


def test_a_comment_is_no_part_of_an_expression() -> None:
    assert read("X @ X  # the square") == read("X @ X")


@pytest.mark.parametrize("name", ["Σ", "Ψ", "ψ_1", "ж", "ω", "Å"])
def test_names_in_other_scripts(name: str) -> None:
    scope = Scope(Setting({name: ("n", "n")}, {}, frozenset()), {})
    assert parse(f"{name} @ {name}.T", scope, "here").shape == ("n", "n")


def test_names_that_python_normalises_are_found_or_refused_in_the_declaration() -> None:
    """A keyboard's µ is U+00B5, which Python reads as Greek U+03BC; ϕ likewise becomes φ."""
    for name in ("µ", "ϕ", "ﬁ"):
        with pytest.raises(InputError, match="that Python takes for another one; write"):
            statement(f"{name} @ {name}.T == {name} @ {name}.T", matrices={name: ("n", "n")})


# --- size -----------------------------------------------------------------------------------------


def test_sums_of_a_thousand_terms_are_read() -> None:
    assert len(read(" + ".join(["X"] * 1000)).args) == 1000


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["X"] * 10_000),
        "(" * 100 + "X" + ")" * 100,
        "(" * 300 + "X" + ")" * 300,
        "-" * 1000 + "X",
        "tr(" * 150 + "X" + ")" * 150,
        "sym(" * 199 + "X" + ")" * 199,
        "X" + ".T" * 5000,
        "X" + " ** 1" * 2000,
        " @ ".join(["X"] * 5000),
        "[" + " + ".join(["X"] * 900) + "]",
        "[" * 150 + "X" + "]" * 150,
        "X * (" * 190 + "X" + ")" * 190,
        "x" * 300_000,
    ],
    ids=lambda text: text[:8],
)
def test_large_expressions_are_read_or_refused_in_a_line(text: str) -> None:
    expr = in_a_line(lambda: read(text))
    assert expr is None or expr.shape in (("n", "n"), (1, 1))
