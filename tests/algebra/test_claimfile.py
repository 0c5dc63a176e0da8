"""Claim files: what is read, and one clear line that names the place for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from algebra.declare import in_a_line

from nonmixing.algebra import Statement, decide, load_claims
from nonmixing.errors import ClaimFileError, InputError, ShapeError

GOOD = """
[matrices]
X = ["n", "n"]
A = ["m", "n"]
x = ["n", 1]
[scalars]
a = {}
"""
CLAIM = '[[claim]]\nid = "c"\nsays = "X == X"\n'


def refused(text: str, kind: type[InputError] = InputError) -> str:
    """The message: one line that begins with the file's name."""
    with pytest.raises(kind) as caught:
        load_claims(text, "paper.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


def load(text: str) -> tuple[Statement, ...]:
    return load_claims(text, "paper.toml")


BAD: list[tuple[str, str, list[str]]] = [
    ("empty", "", ["paper.toml", "empty"]),
    ("blank", "  \n\n", ["paper.toml", "empty"]),
    ("only a comment", "# nothing\n", ["paper.toml", "no claims"]),
    ("no claims", GOOD, ["paper.toml", "no claims", "[[claim]]"]),
    ("bad TOML", "[matrices\nX = 1", ["paper.toml", "TOML", "line 1"]),
    ("a key twice", GOOD + "[kinds]\nX='skew'\nX='skew'\n", ["paper.toml", "TOML"]),
    ("no TOML", "\x00\x01", ["paper.toml", "TOML"]),
    ("deep TOML", "x = " + "[" * 3000, ["paper.toml", "TOML"]),
    ("unknown section", GOOD + "[martices]\n" + CLAIM, ["martices", "matrices"]),
    ("claim is a table", GOOD + '[claim]\nsays = "X == X"\n', ["claim"]),
    ("claim is a string", "claim = 'X == X'\n", ["claim"]),
    ("claims are strings", "claim = ['X == X']\n", ["claim 1"]),
    ("matrices is a list", "matrices = [1]\n" + CLAIM, ["matrices", "table"]),
    ("unknown matrix", GOOD + CLAIM.replace("== X", "== Y"), ["claim 'c'", "'Y'", "X"]),
    ("unknown function", GOOD + CLAIM.replace("== X", "== exp(X)"), ["claim 'c'", "'exp'", "tr"]),
    ("no ==", GOOD + CLAIM.replace("X == X", "X + X"), ["claim 'c'", "=="]),
    ("one =", GOOD + CLAIM.replace("==", "="), ["claim 'c'", "=="]),
    ("two ==", GOOD + CLAIM.replace("X == X", "X == X == X"), ["claim 'c'", "=="]),
    ("nothing after ==", GOOD + CLAIM.replace("== X", "=="), ["claim 'c'", "=="]),
    ("nothing before ==", GOOD + CLAIM.replace("X ==", "=="), ["claim 'c'", "=="]),
    ("===", GOOD + CLAIM.replace("==", "==="), ["claim 'c'"]),
    ("says is no text", GOOD + '[[claim]]\nid = "c"\nsays = 3\n', ["claim 'c'", "says"]),
    ("no says", GOOD + '[[claim]]\nid = "c"\n', ["claim 'c'", "says"]),
    ("id is no text", GOOD + '[[claim]]\nid = 3\nsays = "X == X"\n', ["claim 1", "id", "3"]),
    ("id is empty", GOOD + '[[claim]]\nid = " "\nsays = "X == X"\n', ["claim 1", "id"]),
    ("id twice", GOOD + CLAIM + CLAIM, ["'c'", "two claims"]),
    ("unknown key", GOOD + CLAIM + 'sayz = "X == X"\n', ["'sayz'", "says"]),
    ("unknown verdict", GOOD + CLAIM + 'expect = "true"\n', ["'true'", "proved", "refuted"]),
    (
        "sides of two shapes",
        GOOD + CLAIM.replace("== X", "== A"),
        ["claim 'c'", "X (n x n)", "A (m x n)"],
    ),
    (
        "shapes do not fit",
        GOOD + CLAIM.replace("== X", "== X @ A"),
        ["claim 'c'", "X (n x n)", "A (m x n)"],
    ),
    ("assume without ==", GOOD + CLAIM + 'assume = ["X"]\n', ["claim 'c'", "assume", "=="]),
    ("assume of two shapes", GOOD + CLAIM + 'assume = ["X == A"]\n', ["assume", "A (m x n)"]),
    ("assume with an unknown name", GOOD + CLAIM + 'assume = ["X == Y"]\n', ["assume", "'Y'"]),
    ("assume is a number", GOOD + CLAIM + "assume = 3\n", ["assume", "3"]),
    ("assume holds a number", GOOD + CLAIM + "assume = [3]\n", ["assume", "3"]),
    ("shape with one entry", '[matrices]\nX = ["n"]\n' + CLAIM, ["X", "['n']"]),
    ("shape with three entries", '[matrices]\nX = ["n", "n", "n"]\n' + CLAIM, ["X"]),
    ("shape is a string", '[matrices]\nX = "n"\n' + CLAIM, ["X", "'n'"]),
    ("shape is a number", "[matrices]\nX = 3\n" + CLAIM, ["X", "3"]),
    ("size 0", '[matrices]\nX = ["n", 0]\n' + CLAIM, ["X", "0"]),
    ("negative size", '[matrices]\nX = ["n", -2]\n' + CLAIM, ["X", "-2"]),
    ("size 1.5", '[matrices]\nX = ["n", 1.5]\n' + CLAIM, ["X", "1.5"]),
    ("size true", "[matrices]\nX = [true, true]\n" + CLAIM, ["X", "True"]),
    ("size is a keyword", '[matrices]\nX = ["for", "n"]\n' + CLAIM, ["X", "for"]),
    ("size is an expression", '[matrices]\nX = ["n)", "n"]\n' + CLAIM, ["X", "n)"]),
    ("name is no name", '[matrices]\n"2X" = ["n", "n"]\n' + CLAIM, ["2X"]),
    ("name is a keyword", '[matrices]\nlambda = ["n", "n"]\n' + CLAIM, ["lambda"]),
    ("name is a function", '[matrices]\ntr = ["n", "n"]\n' + CLAIM, ["tr", "function"]),
    ("scalar is a function", GOOD + "norm2 = {}\n" + CLAIM, ["norm2", "function"]),
    ("matrix and scalar", '[matrices]\nX = ["n", "n"]\n[scalars]\nX = {}\n' + CLAIM, ["'X'"]),
    ("matrix and dimension", '[matrices]\nX = ["n", "n"]\nn = ["n", "n"]\n' + CLAIM, ["'n'"]),
    ("scalar and dimension", '[matrices]\nX = ["n", "n"]\n[scalars]\nn = {}\n' + CLAIM, ["'n'"]),
    ("define twice over", GOOD + '[define]\nX = "X"\n' + CLAIM, ["[define]", "'X'"]),
    ("define a dimension", GOOD + '[define]\nn = "X"\n' + CLAIM, ["[define]", "'n'"]),
    ("define a function", GOOD + '[define]\ntr = "X"\n' + CLAIM, ["[define]", "'tr'"]),
    (
        "define in the wrong order",
        GOOD + '[define]\nE = "F"\nF = "X"\n' + CLAIM,
        ["[define] E", "'F'"],
    ),
    ("define of itself", GOOD + '[define]\nE = "E + X"\n' + CLAIM, ["[define] E", "'E'"]),
    (
        "define with a mistake",
        GOOD + '[define]\nE = "X @ A"\n' + CLAIM,
        ["[define] E", "A (m x n)"],
    ),
    ("define is a list", GOOD + '[define]\nE = ["X"]\n' + CLAIM, ["[define] E"]),
    ("define true", GOOD + "[define]\nE = true\n" + CLAIM, ["[define] E", "True"]),
    ("unknown kind", GOOD + '[kinds]\nX = "positive"\n' + CLAIM, ["X", "'positive'", "symmetric"]),
    ("kind of nothing", GOOD + '[kinds]\nY = "skew"\n' + CLAIM, ["'Y'"]),
    ("kind of a scalar", GOOD + '[kinds]\na = "constant"\n' + CLAIM, ["'a'"]),
    ("kind is a number", GOOD + "[kinds]\nX = 3\n" + CLAIM, ["X", "3"]),
    ("kinds are numbers", GOOD + "[kinds]\nX = [3]\n" + CLAIM, ["X", "3"]),
    (
        "symmetric, not square",
        GOOD + '[kinds]\nA = "symmetric"\n' + CLAIM,
        ["A", "m x n", "square"],
    ),
    ("diagonal, not square", GOOD + '[kinds]\nA = "diagonal"\n' + CLAIM, ["A", "m x n", "square"]),
    (
        "orthogonal, not square",
        GOOD + '[kinds]\nA = "orthogonal"\n' + CLAIM,
        ["A", "m x n", "square"],
    ),
    (
        "orthonormal, too wide",
        '[matrices]\nX = [2, 3]\n[kinds]\nX = "orthonormal"\n' + CLAIM,
        ["X", "2 x 3"],
    ),
    ("d without flow", GOOD + CLAIM.replace("== X", "== d(X)"), ["claim 'c'", "[flow]"]),
    ("after without step", GOOD + CLAIM.replace("== X", "== after(X)"), ["claim 'c'", "[step"]),
    ("flow without loss", GOOD + '[flow]\nvariables = ["X"]\n' + CLAIM, ["[flow]", "loss"]),
    ("flow without variables", GOOD + '[flow]\nloss = "tr(X)"\n' + CLAIM, ["[flow]", "variables"]),
    (
        "flow of a matrix",
        GOOD + '[flow]\nloss = "X"\nvariables = ["X"]\n' + CLAIM,
        ["loss", "n x n"],
    ),
    ("flow of an unknown", GOOD + '[flow]\nloss = "tr(X)"\nvariables = ["Y"]\n' + CLAIM, ["'Y'"]),
    ("flow of a number", GOOD + '[flow]\nloss = "tr(X)"\nvariables = [1]\n' + CLAIM, ["1"]),
    (
        "variables as text",
        GOOD + '[flow]\nloss = "tr(X)"\nvariables = "X"\n' + CLAIM,
        ["variables", "'X'"],
    ),
    ("no variables", GOOD + '[flow]\nloss = "tr(X)"\nvariables = []\n' + CLAIM, ["variables"]),
    ("flow with a typo", GOOD + '[flow]\nlos = "tr(X)"\nvariables = ["X"]\n' + CLAIM, ["'los'"]),
    (
        "loss and velocity",
        GOOD + '[flow]\nloss = "tr(X)"\n[flow.velocity]\nX = "X"\n' + CLAIM,
        ["[flow]", "both"],
    ),
    ("velocity of an unknown", GOOD + '[flow.velocity]\nY = "X"\n' + CLAIM, ["'Y'"]),
    ("velocity of another shape", GOOD + '[flow.velocity]\nX = "A"\n' + CLAIM, ["X", "A (m x n)"]),
    (
        "velocity of an orthogonal",
        GOOD + '[kinds]\nX = "orthogonal"\n[flow.velocity]\nX = "X"\n' + CLAIM,
        ["X", "orthogonal"],
    ),
    (
        "velocity of a constant",
        GOOD + '[kinds]\nX = "constant"\n[flow.velocity]\nX = "X"\n' + CLAIM,
        ["X", "constant"],
    ),
    (
        "step without update",
        GOOD + "[step]\n" + CLAIM.replace("X == X", "after(X) == X"),
        ["[step"],
    ),
    ("update of another shape", GOOD + '[step.update]\nX = "A"\n' + CLAIM, ["X", "A (m x n)"]),
    ("update of an unknown", GOOD + '[step.update]\nY = "X"\n' + CLAIM, ["'Y'"]),
    ("step with a typo", GOOD + '[step.updates]\nX = "X"\n' + CLAIM, ["[step"]),
]


@pytest.mark.parametrize(("text", "parts"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_one_line_that_names_the_place(text: str, parts: list[str]) -> None:
    message = refused(text)
    for part in parts:
        assert part in message, message


def test_shapes_raise_shape_errors_and_the_rest_none() -> None:
    refused(GOOD + CLAIM.replace("== X", "== X @ A"), ShapeError)
    refused(GOOD + CLAIM.replace("== X", "== A"), ShapeError)
    refused("", ClaimFileError)
    refused(GOOD, ClaimFileError)


@pytest.mark.parametrize("text", ["\ufeff" + GOOD + CLAIM, (GOOD + CLAIM).replace("\n", "\r\n")])
def test_marks_and_line_ends_of_other_systems(text: str) -> None:
    claims = in_a_line(lambda: load(text))
    assert claims is None or len(claims) == 1


def test_a_file_in_full() -> None:
    text = """
    [matrices]
    U = ["m", "r"]
    V = ["n", "r"]
    T = ["m", "n"]
    [kinds]
    T = "constant"
    [scalars]
    eta = {}
    [define]
    Q = "U @ V.T"
    E = "Q - T"
    half = 0.5
    two = 2
    [flow]
    loss = "half * norm2(E)"
    variables = ["U", "V"]
    [step.update]
    U = "U - eta * E @ V"
    V = "V - eta * E.T @ U"
    [[claim]]
    id = "flow-equation"
    title = "the flow of the product"
    source = "a paper"
    says = "d(Q) == -E @ V @ V.T - U @ U.T @ E"
    expect = "proved"
    [[claim]]
    says = "d(U.T @ U - V.T @ V) == 0"
    assume = []
    [[claim]]
    id = "step"
    says = "after(U) == U - eta * E @ V * two / 2"
    [[claim]]
    id = "balanced"
    says = "norm2(U) == norm2(V)"
    assume = "U.T @ U == V.T @ V"
    """
    statements = load(text)
    assert [s.id for s in statements] == ["flow-equation", "claim-2", "step", "balanced"]
    assert statements[0].title == "the flow of the product"
    assert statements[0].expect == "proved"
    assert statements[0].says == "d(Q) == -E @ V @ V.T - U @ U.T @ E"
    assert statements[1].expect is None
    assert [e.says for e in statements[3].assume] == ["U.T @ U == V.T @ V"]
    assert all(decide(s) for s in statements)


def test_a_claim_over_several_lines() -> None:
    """TOML has strings over several lines, and long claims use them."""
    text = GOOD + '[[claim]]\nid = "c"\nsays = """\nX @ X\n  + X ==\n  X\n  + X @ X\n"""\n'
    (claim,) = load(text)
    assert decide(claim)


def test_dimensions_may_have_the_names_of_functions() -> None:
    text = """
    [matrices]
    W = ["d", "tr"]
    [[claim]]
    id = "c"
    says = "norm2(eye(d)) * W == d * W"
    """
    (claim,) = load(text)
    assert decide(claim)


def test_names_that_look_alike_are_kept_apart() -> None:
    text = """
    [matrices]
    X = ["n", "n"]
    x = ["n", 1]
    X1 = ["n", "n"]
    X_1 = ["n", "n"]
    [[claim]]
    id = "c"
    says = "X @ X1 == X @ X_1"
    """
    (claim,) = load(text)
    decision = decide(claim)
    assert decision.verdict == "refuted"
    assert decision.counterexample is not None
    assert set(decision.counterexample.values) == {"X", "X1", "X_1"}


def test_only_what_the_claim_uses_is_in_its_counterexample() -> None:
    text = GOOD + CLAIM.replace("== X", "== a * X")
    (claim,) = load(text)
    found = decide(claim).counterexample
    assert found is not None
    assert set(found.values) == {"X", "a"}
    assert set(found.dims) == {"n"}
    assert not isinstance(found.values["a"], tuple)


def test_the_name_of_the_file_stands_in_front(tmp_path: Path) -> None:
    with pytest.raises(ClaimFileError, match=r"^some/where\.toml: "):
        load_claims("", "some/where.toml")
