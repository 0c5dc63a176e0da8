"""Decisions: matrix calculus, kinds, sizes, hypotheses, the second opinion, limits."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from algebra.declare import in_a_line, judged, statement, toml, verdict
from algebra.oracle import World, array, draw_matrix

from nonmixing.algebra import Decision, Disagreement, decide, load_claims
from nonmixing.algebra import canonical as canonical_module
from nonmixing.algebra import decide as _decide_function
from nonmixing.algebra import expr as ex
from nonmixing.algebra.canonical import SYMMETRIC, Head
from nonmixing.algebra.certificate import check_certificate
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.terms import Poly, Table
from nonmixing.algebra.words import Unsuited, Words
from nonmixing.errors import InputError

assert _decide_function is decide
decide_module: Any = sys.modules["nonmixing.algebra.decide"]

TRUE = [
    # products, transposes, traces
    "(A @ X @ B.T).T == B @ X.T @ A.T",
    "tr(A @ B.T) == tr(B.T @ A)",
    "tr(X @ Y @ Z) == tr(Z @ X @ Y)",
    "tr(X @ Y @ Z) == tr(Z.T @ Y.T @ X.T)",
    "tr(X @ Y @ X @ Y) == tr(Y @ X @ Y @ X)",
    "(X + Y) @ (X - Y) == X @ X - X @ Y + Y @ X - Y @ Y",
    "inner(A, B) == tr(A.T @ B)",
    "norm2(A + B) == norm2(A) + 2 * inner(A, B) + norm2(B)",
    "norm2(A + B) + norm2(A - B) == 2 * norm2(A) + 2 * norm2(B)",
    "norm2(A @ x) == x.T @ A.T @ A @ x",
    "tr(X @ Y - Y @ X) == 0",
    "tr((x @ y.T) @ X) == y.T @ X @ x",
    "x.T @ X @ y == y.T @ X.T @ x",
    "(x.T @ y) * x == x @ x.T @ y",
    "norm2(x @ u.T) == norm2(x) * norm2(u)",
    # Jacobi, commutators
    "X@(Y@Z-Z@Y)-(Y@Z-Z@Y)@X + Y@(Z@X-X@Z)-(Z@X-X@Z)@Y + Z@(X@Y-Y@X)-(X@Y-Y@X)@Z == 0",
    "tr(X @ (Y @ Z - Z @ Y)) == tr((X @ Y - Y @ X) @ Z)",
    "(X @ Y - Y @ X).T == Y.T @ X.T - X.T @ Y.T",
    "sym(X) + skew(X) == X",
    "inner(sym(X), skew(Y)) == 0",
    "sym(sym(X)) == sym(X)",
    "skew(X).T == -skew(X)",
    # elementwise, diagonals, ones
    "A * B == B * A",
    "diag(x) @ y == x * y",
    "diag(x) @ X @ diag(y) == (x @ y.T) * X",
    "diagpart(X) == eye(n) * X",
    "diagpart(diag(x) @ X) == diag(x) @ diagpart(X)",
    "tr(diagpart(X) @ Y) == tr(X @ diagpart(Y))",
    "x.T @ (X * Y) @ y == tr(diag(x) @ X @ diag(y) @ Y.T)",
    "sum(A * B) == tr(A @ B.T)",
    "sum(A) == ones(1, m) @ A @ ones(n, 1)",
    "(A * B) @ ones(n, 1) == diagpart(A @ B.T) @ ones(m, 1)",
    "(x @ y.T) * (y @ x.T) == (x * y) @ (x * y).T",
    "(x * y).T @ z == sum(x * y * z)",
    "A ** 3 == A * A * A",
    "A @ ones(n, m) @ ones(m, n) == m * A @ ones(n, n)",
    "tr(eye(n)) * X == n * X",
    "norm2(eye(n)) * X == n * X",
    "sum(X @ ones(n, n)) == n * sum(X)",
    "(x + y) ** 2 == x ** 2 + 2 * x * y + y ** 2",
    "sum(x) ** 2 == x.T @ ones(n, n) @ x",
    # gradients
    "grad(tr(A @ B.T), A) == B",
    "grad(tr(X @ X), X) == 2 * X.T",
    "grad(tr(X @ X @ X), X) == 3 * (X @ X).T",
    "grad(tr(X.T @ Y @ X @ Z), X) == Y @ X @ Z + Y.T @ X @ Z.T",
    "grad(x.T @ X @ y, X) == x @ y.T",
    "grad(x.T @ X @ x, x) == (X + X.T) @ x",
    "grad(norm2(A @ x - u), x) == 2 * A.T @ (A @ x - u)",
    "grad(norm2(A @ x - u), A) == 2 * (A @ x - u) @ x.T",
    "grad(norm2(U @ V.T - A), U) == 2 * (U @ V.T - A) @ V",
    "grad(norm2(X.T @ X), X) == 4 * X @ X.T @ X",
    "grad(tr(X) ** 3, X) == 3 * tr(X) ** 2 * eye(n)",
    "grad(sum(A ** 4), A) == 4 * A ** 3",
    "grad(x.T @ diag(y) @ x, x) == 2 * y * x",
    "grad(sum(diagpart(X) ** 2), X) == 2 * diagpart(X)",
    "grad(tr(X) * tr(Y @ X), X) == tr(Y @ X) * eye(n) + tr(X) * Y.T",
    "grad(a ** 3 * tr(X), a) == 3 * a ** 2 * tr(X)",
    "grad(norm2(grad(norm2(A @ x), x)) / 4, x) == 2 * A.T @ A @ A.T @ A @ x",
    "D(X @ X, X, Y) == X @ Y + Y @ X",
    "D(X @ X @ X, X, Y) == Y @ X @ X + X @ Y @ X + X @ X @ Y",
    "D(norm2(A), A, B) == 2 * inner(A, B)",
    "D(D(tr(X @ X @ X), X, Y), X, Z) == 3 * tr(X @ Y @ Z) + 3 * tr(X @ Z @ Y)",
    "D(tr(X @ Y), X, Z) == inner(grad(tr(X @ Y), X), Z)",
    "D(x * x, x, y) == 2 * x * y",
]

FALSE = [
    "X @ Y == Y @ X",
    "(X @ Y).T == X.T @ Y.T",
    "tr(X @ Y @ Z) == tr(X @ Z @ Y)",
    "tr(X @ Y) == tr(X) * tr(Y)",
    "tr(X @ X) == norm2(X)",
    "tr(X @ X) == tr(X) ** 2",
    "tr(X @ Y @ X @ Y) == tr(X @ X @ Y @ Y)",
    "tr(X.T @ Y) == tr(X @ Y)",
    "norm2(X @ Y) == norm2(X) * norm2(Y)",
    "norm2(X + Y) == norm2(X) + norm2(Y)",
    "X * Y == X @ Y",
    "x * y == diag(y) @ y",
    "diagpart(X @ Y) == diagpart(X) @ diagpart(Y)",
    "diagpart(X @ Y) == diagpart(Y @ X)",
    "diag(x) @ X == X @ diag(x)",
    "x @ y.T == y @ x.T",
    "(x @ y.T) * X == X @ diag(y)",
    "sum(A) == tr(A @ A.T)",
    "sum(X @ Y) == sum(Y @ X)",
    "sum(x * y) == sum(x) * sum(y)",
    "tr(eye(n)) * X == (n + 1) * X",
    "ones(n, n) @ ones(n, n) == ones(n, n)",
    "norm2(eye(n)) * X == n ** 2 * X",
    "n * A == m * A",
    "grad(tr(X @ X), X) == 2 * X",
    "grad(tr(X.T @ Y @ X @ Z), X) == 2 * Y @ X @ Z",
    "grad(x.T @ X @ x, x) == 2 * X @ x",
    "grad(norm2(X @ x), x) == 2 * X @ X.T @ x",
    "grad(norm2(X.T @ X), X) == 4 * X.T @ X @ X",
    "grad(sum(A ** 3), A) == 3 * A",
    "grad(tr(X) ** 2, X) == 2 * tr(X) * X",
    "D(X @ X, X, Y) == 2 * X @ Y",
    "D(D(tr(X @ X @ X), X, Y), X, Z) == 6 * tr(X @ Y @ Z)",
    "sym(X) == X",
    "sym(X) @ sym(X) == sym(X @ X)",
    "X == -X",
    "X == 0",
    "0 == x",
    "X - X == eye(n)",
    "norm2(x @ u.T) == norm2(x) + norm2(u)",
    "tr(X @ Y @ Z @ X) == tr(X @ Z @ Y @ X)",
    "sum((X * X) @ Y) == sum((X * Y) @ X)",
]


@pytest.mark.parametrize("says", TRUE)
def test_true(says: str) -> None:
    decision = judged(says)
    assert decision.verdict == "proved"
    assert decision.scope.startswith(("every ", "all values"))


@pytest.mark.parametrize("says", FALSE)
def test_false(says: str) -> None:
    assert verdict(says) == "refuted"


def test_the_table_is_long_enough() -> None:
    assert len(set(TRUE)) >= 55
    assert len(set(FALSE)) >= 35


# --- kinds ----------------------------------------------------------------------------------------

UNDER_KINDS = [
    ("S.T == S", "proved"),
    ("K.T == -K", "proved"),
    ("L.T == L", "proved"),
    ("S @ T == T @ S", "refuted"),
    ("(S @ T).T == T @ S", "proved"),
    ("tr(S @ T @ X) == tr(S @ X.T @ T)", "proved"),
    ("tr(S @ T @ X) == tr(S @ X @ T)", "refuted"),
    ("tr(S @ T @ S @ S) == tr(S @ S @ T @ S)", "proved"),
    ("tr(S @ X) == tr(S @ X.T)", "proved"),
    ("skew(S) == 0", "proved"),
    ("tr(K) == 0", "proved"),
    ("x.T @ K @ x == 0", "proved"),
    ("x.T @ K @ y == 0", "refuted"),
    ("x.T @ K @ y == -y.T @ K @ x", "proved"),
    ("tr(K @ S) == 0", "proved"),
    ("tr(K @ K @ K) == 0", "proved"),
    ("tr(K @ K) == 0", "refuted"),
    ("tr(K @ K @ S) == 0", "refuted"),
    ("tr(K @ J) == tr(J @ K)", "proved"),
    ("K @ J - J @ K == skew(K @ J - J @ K)", "proved"),
    ("x.T @ K @ K @ K @ x == 0", "proved"),
    ("diagpart(K) == 0", "proved"),
    ("sum(K * S) == 0", "proved"),
    ("K * S == 0", "refuted"),
    ("sum(L @ K) == 0", "refuted"),
    ("sum(L @ K @ L) == 0", "proved"),
    ("sum(K @ L @ K @ L @ K) == 0", "proved"),
    ("L @ M == M @ L", "proved"),
    ("L @ M == L * M", "proved"),
    ("L @ X == X @ L", "refuted"),
    ("diag(L @ ones(n, 1)) == L", "proved"),
    ("diagpart(L @ X) == L * X", "proved"),
    ("L @ X @ M == (L @ ones(n, n) @ M) * X", "proved"),
    ("O.T @ O == eye(n)", "proved"),
    ("O @ O.T == eye(n)", "proved"),
    ("inv(O) == O.T", "proved"),
    ("O @ O == eye(n)", "refuted"),
    ("O.T == O", "refuted"),
    ("norm2(O @ X) == norm2(X)", "proved"),
    ("norm2(O) == n", "proved"),
    ("tr(O @ X @ O.T) == tr(X)", "proved"),
    ("O @ Q == Q @ O", "refuted"),
    ("(O @ Q).T @ (O @ Q) == eye(n)", "proved"),
    ("sum(O * O) == n", "proved"),
    ("sum(O ** 4) == n", "refuted"),
    ("P.T @ P == eye(r)", "proved"),
    ("P @ P.T == eye(m)", "refuted"),
    ("P @ P.T @ P @ P.T == P @ P.T", "proved"),
    ("norm2(P @ R.T) == norm2(R)", "proved"),
    ("norm2(P.T @ A) == norm2(A)", "refuted"),
    ("tr(P @ P.T) == r", "proved"),
    ("inv(G) @ G == eye(n)", "proved"),
    ("G @ inv(G) == eye(n)", "proved"),
    ("inv(G @ H) == inv(H) @ inv(G)", "proved"),
    ("inv(G @ H) == inv(G) @ inv(H)", "refuted"),
    ("inv(G).T == inv(G.T)", "proved"),
    ("inv(G) == G.T", "refuted"),
    ("inv(3 * G) == inv(G) / 3", "proved"),
    ("inv(inv(G)) == G", "proved"),
    ("D(inv(G), G, X) == -inv(G) @ X @ inv(G)", "proved"),
    ("D(inv(G), G, X) == inv(G) @ X @ inv(G)", "refuted"),
    ("grad(tr(inv(G) @ X), G) == -(inv(G) @ X @ inv(G)).T", "proved"),
    ("grad(tr(S @ S), S) == 2 * S", "proved"),
    ("grad(tr(K @ K), K) == -2 * K", "proved"),
    ("grad(tr(K @ K), K) == 2 * K", "refuted"),
    ("grad(sum(L), L) == ones(n, n)", "proved"),
    ("grad(norm2(O), O) == 2 * O", "proved"),
]


@pytest.mark.parametrize(("says", "expected"), UNDER_KINDS)
def test_kinds(says: str, expected: str) -> None:
    assert verdict(says) == expected


COMBINED = [
    ("X @ X == eye(n)", ["symmetric", "orthogonal"], "proved"),
    ("X == eye(n)", ["symmetric", "orthogonal"], "refuted"),
    ("X @ X == -eye(n)", ["skew", "orthogonal"], "proved"),
    ("X @ X == eye(n)", ["diagonal", "orthogonal"], "proved"),
    ("X * X == eye(n)", ["diagonal", "orthogonal"], "proved"),
    ("inv(X).T == inv(X)", ["symmetric", "invertible"], "proved"),
    ("inv(X) @ Y == Y @ inv(X)", ["symmetric", "invertible"], "refuted"),
    ("inv(X) @ X @ X == diagpart(X)", ["diagonal", "invertible"], "proved"),
    ("inv(X).T == -inv(X)", ["skew", "invertible"], "proved"),
    ("inv(X) * X == eye(n)", ["diagonal", "invertible"], "proved"),
    ("inv(X) == X.T", ["orthogonal", "invertible"], "proved"),
    ("X == 0", ["diagonal", "symmetric"], "refuted"),
]


@pytest.mark.parametrize(("says", "kinds", "expected"), COMBINED)
def test_kinds_together(says: str, kinds: list[str], expected: str) -> None:
    assert verdict(says, kinds={"X": kinds}) == expected


UNIT = [
    ("x.T @ x == 1", {"x": ("n", 1)}, {"x": "orthonormal"}, "proved"),
    ("norm2(x @ y.T) == norm2(y)", {"x": ("n", 1)}, {"x": "orthonormal"}, "proved"),
    ("norm2(x) == 2", {"x": ("n", 1)}, {"x": "orthonormal"}, "refuted"),
    ("X @ X == eye(1)", {"X": (1, 1)}, {"X": "orthogonal"}, "proved"),
    ("X == eye(1)", {"X": (1, 1)}, {"X": "orthogonal"}, "refuted"),
    ("inv(X) * X == 1", {"X": (1, 1)}, {"X": "invertible"}, "proved"),
    ("X == 0", {"X": (1, 1)}, {"X": "skew"}, "proved"),
    ("X.T == X", {"X": (1, 1)}, {}, "proved"),
    ("X @ Y == Y @ X", {"X": (1, 1), "Y": (1, 1)}, {}, "proved"),
    ("X @ A == A * X", {"X": (1, 1), "A": (1, "n")}, {}, "proved"),
    ("tr(X) == X", {"X": (1, 1)}, {}, "proved"),
    ("sum(X) == X", {"X": (1, 1)}, {}, "proved"),
    ("grad(X ** 3, X) == 3 * X ** 2", {"X": (1, 1)}, {}, "proved"),
    ("diag(X) == X", {"X": (1, 1)}, {}, "proved"),
    ("diagpart(X) == 2 * X", {"X": (1, 1)}, {}, "refuted"),
    ("ones(1, 1) == eye(1)", {}, {}, "proved"),
]


@pytest.mark.parametrize(("says", "matrices", "kinds", "expected"), UNIT)
def test_size_one(says: str, matrices: Any, kinds: Any, expected: str) -> None:
    assert verdict(says, matrices=matrices, kinds=kinds) == expected


# --- flows and steps ------------------------------------------------------------------------------

FLOW = """[flow]
loss = "norm2(U @ V.T - A) / 2"
variables = ["U", "V"]
"""
VELOCITY = """[flow.velocity]
X = "Y @ X"
x = "-x"
a = "b * a"
"""
STEP = """[step.update]
U = "U - a * (U @ V.T - A) @ V"
V = "V - a * (U @ V.T - A).T @ U"
a = "a / 2"
"""
MOVING = [
    (FLOW, "d(U) == (A - U @ V.T) @ V", "proved"),
    (FLOW, "d(U.T @ U - V.T @ V) == 0", "proved"),
    (FLOW, "d(U.T @ U + V.T @ V) == 0", "refuted"),
    (FLOW, "d(A) == 0", "proved"),
    (FLOW, "d(U @ V.T) == (A - U @ V.T) @ V @ V.T + U @ U.T @ (A - U @ V.T)", "proved"),
    (FLOW, "d(U @ V.T) == (A - U @ V.T) @ V @ V.T", "refuted"),
    (FLOW, "d(norm2(U @ V.T - A)) / 2 == -norm2(d(U)) - norm2(d(V))", "proved"),
    (FLOW, "d(d(U)) == -d(U @ V.T) @ V + (A - U @ V.T) @ d(V)", "proved"),
    (FLOW, "d(a * U) == a * d(U)", "proved"),
    (VELOCITY, "d(X @ X) == Y @ X @ X + X @ Y @ X", "proved"),
    (VELOCITY, "d(x.T @ X @ x) == x.T @ Y @ X @ x - 2 * x.T @ X @ x", "proved"),
    (VELOCITY, "d(a ** 2 * X) == 2 * b * a ** 2 * X + a ** 2 * Y @ X", "proved"),
    (VELOCITY, "d(1 / a) == -b / a", "proved"),
    (VELOCITY, "d(X / a) == Y @ X / a", "refuted"),
    (VELOCITY, "d(d(x)) == x", "proved"),
    (VELOCITY, "grad(d(norm2(x)), x) == -4 * x", "proved"),
    (VELOCITY, "d(grad(norm2(x), x)) == -2 * x", "proved"),
    (STEP, "after(U) - U == -a * (U @ V.T - A) @ V", "proved"),
    (STEP, "after(U.T @ U - V.T @ V) == U.T @ U - V.T @ V", "refuted"),
    (STEP, "after(U @ V.T) == after(U) @ after(V).T", "proved"),
    (STEP, "after(A) == A", "proved"),
    (STEP, "after(1 / a) == 2 / a", "proved"),
    (STEP, "after(U / a) == U / a", "refuted"),
    (STEP, "after(after(a)) == a / 4", "proved"),
    (STEP, "D(after(U), A, B) == a * B @ V", "proved"),
]


@pytest.mark.parametrize(("more", "says", "expected"), MOVING)
def test_flows_and_steps(more: str, says: str, expected: str) -> None:
    assert verdict(says, more=more) == expected


def test_projected_flow_of_linear_kinds() -> None:
    flow = '[flow]\nloss = "norm2(S - X) / 2 + norm2(K - Y) / 2 + norm2(L - Z) / 2"\n'
    flow += 'variables = ["S", "K", "L"]\n'
    assert verdict("d(S) == sym(X) - S", more=flow) == "proved"
    assert verdict("d(K) == skew(Y) - K", more=flow) == "proved"
    assert verdict("d(L) == diagpart(Z) - L", more=flow) == "proved"
    assert verdict("d(S) == X - S", more=flow) == "refuted"


STILL = """[flow.velocity]
U = "0"
V = "R"
"""


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("d(U) == 0", "proved"),
        ("d(U.T @ U) == 0", "proved"),
        ("d(U @ V.T) == U @ R.T", "proved"),
        ("d(U * U) == zeros(m, r)", "proved"),
        ("d(norm2(U)) == 0", "proved"),
        ("d(U @ V.T) == 0", "refuted"),
    ],
)
def test_a_velocity_of_zero(says: str, expected: str) -> None:
    assert verdict(says, more=STILL, kinds={}) == expected


@pytest.mark.parametrize("zero", ["0", "zeros(m, r)", "0 * U"])
@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("after(U) == 0", "proved"),
        ("after(U.T @ U) == zeros(r, r)", "proved"),
        ("after(U + P) == P", "proved"),
        ("after(norm2(U)) == 0", "proved"),
        ("after(U * P + P) == U", "refuted"),
    ],
)
def test_an_update_to_zero(zero: str, says: str, expected: str) -> None:
    more = f'[step.update]\nU = "{zero}"\n'
    assert verdict(says, more=more, kinds={"P": []}) == expected


# --- sizes ----------------------------------------------------------------------------------------


def standard_identity(n: int) -> str:
    """The standard polynomial of 2n matrices: 0 for n x n matrices (Amitsur and Levitzki 1950)."""
    import itertools

    names = [f"E{i}" for i in range(2 * n)]
    terms: list[str] = []
    for order in itertools.permutations(range(2 * n)):
        odd = sum(a > b for i, a in enumerate(order) for b in order[i + 1 :]) % 2
        terms.append(("- " if odd else "+ ") + " @ ".join(names[i] for i in order))
    return " ".join(terms)[2:] + " == 0"


@pytest.mark.parametrize(("size", "expected"), [(2, "proved"), (1, "proved"), (3, "refuted")])
def test_amitsur_levitzki(size: int, expected: str) -> None:
    matrices: Any = {f"E{i}": (size, size) for i in range(4)}
    assert verdict(standard_identity(2), matrices=matrices) == expected


def test_amitsur_levitzki_at_every_size_is_refuted_at_three() -> None:
    decision = judged(standard_identity(2), matrices={f"E{i}": ("n", "n") for i in range(4)})
    assert decision.verdict == "refuted"
    assert decision.counterexample is not None
    assert dict(decision.counterexample.dims) == {"n": 3}


def test_cayley_hamilton() -> None:
    two = "X @ X - tr(X) * X + (tr(X) ** 2 - tr(X @ X)) / 2 * eye({}) == 0"
    assert verdict(two.format(2), matrices={"X": (2, 2)}) == "proved"
    assert verdict(two.format(3), matrices={"X": (3, 3)}) == "refuted"
    assert verdict(two.format("n")) == "refuted"
    three = (
        "X @ X @ X - tr(X) * X @ X + (tr(X) ** 2 - tr(X @ X)) / 2 * X - (tr(X) ** 3 "
        "- 3 * tr(X) * tr(X @ X) + 2 * tr(X @ X @ X)) / 6 * eye(3) == 0"
    )
    decision = judged(three, matrices={"X": (3, 3)})
    assert decision.verdict == "proved"
    assert "3" in decision.scope


def test_two_by_two_identities() -> None:
    def at_two(says: str, **more: Any) -> str:
        return verdict(says, matrices=dict.fromkeys("XYZ", (2, 2)), **more)

    hall = "(X @ Y - Y @ X) @ (X @ Y - Y @ X) @ Z == Z @ (X @ Y - Y @ X) @ (X @ Y - Y @ X)"
    assert at_two(hall) == "proved"
    assert verdict(hall) == "refuted"
    assert at_two("X @ Y == Y @ X") == "refuted"
    assert at_two("K @ J == J @ K") == "refuted"  # K and J are n x n here
    small: Any = {"K": (2, 2), "J": (2, 2), "S": (2, 2)}
    kinds: Any = {"K": "skew", "J": "skew", "S": "symmetric"}
    assert verdict("K @ J == J @ K", matrices=small, kinds=kinds) == "proved"
    assert verdict("K @ S + S @ K == tr(S) * K", matrices=small, kinds=kinds) == "proved"
    assert verdict("K @ S == S @ K", matrices=small, kinds=kinds) == "refuted"


def test_integer_beside_symbolic_dimension() -> None:
    matrices: Any = {"A": ("m", 2), "B": (2, "m")}
    square = "A @ B @ A @ B - tr(A @ B) * A @ B + (tr(A @ B) ** 2 - tr(A @ B @ A @ B)) / 2 * A"
    ends = square.replace("* A @ B + ", "* A @ B + ").removesuffix(" * A") + " * 0 * A @ B == 0"
    assert verdict(ends, matrices=matrices) == "refuted"
    good = (
        "A @ B @ A @ B @ A @ B - tr(A @ B) * A @ B @ A @ B "
        "+ (tr(A @ B) ** 2 - tr(A @ B @ A @ B)) / 2 * A @ B == 0"
    )
    assert verdict(good, matrices=matrices) == "proved"
    assert verdict(good, matrices={"A": ("m", 3), "B": (3, "m")}) == "refuted"


@pytest.mark.parametrize("kind", ["orthonormal", None])
def test_false_at_integer_sizes_with_kinds(kind: str | None) -> None:
    """Sizes at which no matrix of the kind exists say nothing."""
    declared: Any = {"P": kind}
    matrices: Any = {"P": ("m", "r"), "X": ("m", 2)}
    assert verdict("P @ P.T @ X == X", matrices=matrices, kinds=declared) == "refuted"


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "says", ["A @ O @ O == A", "A @ O.T == A @ O", "tr(B @ A @ O @ O) == tr(B @ A)"]
)
def test_claims_true_on_one_component_of_the_orthogonal_group(rows: int, says: str) -> None:
    """O @ O == 1 for the reflections of the plane, not for its rotations."""
    matrices: Any = {"A": (rows, 2), "O": (2, 2), "B": (2, rows)}
    assert verdict(says, matrices=matrices, kinds={"O": "orthogonal"}) == "refuted"


@pytest.mark.parametrize(
    ("says", "size"),
    [
        ("(n - 1) * (n - 2) * X == 0", 3),
        ("n * X == tr(eye(n)) * X + (n - 1) * X", 2),
        ("tr(X) * eye(n) == X", 2),
        ("(n - 1) * (n - 2) * (n - 3) * (n - 4) * X == 0", 5),
        ("(n - 1) * (n - 2) * (n - 3) * (n - 4) * (n - 5) * (n - 6) * (n - 7) * X == 0", 8),
    ],
)
def test_dimension_dependent(says: str, size: int) -> None:
    decision = judged(says)
    assert decision.verdict == "refuted"
    assert decision.counterexample is not None
    assert decision.counterexample.dims["n"] == size


def test_dimension_dependent_beside_an_integer() -> None:
    matrices: Any = {"A": (2, 2), "X": ("n", "n")}
    says = "(n - 1) * (n - 2) * (n - 3) * (n - 4) * A == 0"
    text = toml(says, matrices=matrices).replace("[matrices]", "[matrices]\nX = ['n', 'n']")
    (only,) = load_claims(text, "test.toml")
    decision = decide(only)
    assert decision.verdict == "refuted"


def test_dimension_that_occurs_only_in_eye_is_a_scalar_too() -> None:
    assert verdict("tr(eye(k)) == k") == "proved"
    assert verdict("sum(ones(1, k)) == k + 1") == "refuted"


# --- numbers and scalars --------------------------------------------------------------------------

SCALARS = [
    ("1 / (a + b) + 1 / (a - b) == 2 * a / (a ** 2 - b ** 2)", "proved"),
    ("(a ** 2 - b ** 2) / (a - b) == a + b", "proved"),
    ("1 / (1 / a) == a", "proved"),
    ("a / b / c == a / (b * c)", "proved"),
    ("1 / (1 + 1 / a) == a / (a + 1)", "proved"),
    ("a ** -2 * a ** 3 == a", "proved"),
    ("X / (2 * a) == 0.5 * X / a", "proved"),
    ("1 / a + 1 / b == 1 / (a + b)", "refuted"),
    ("a / b == b / a", "refuted"),
    ("a * b == b * a", "proved"),
    ("(a + b) ** 3 == a ** 3 + 3 * a ** 2 * b + 3 * a * b ** 2 + b ** 3", "proved"),
    ("a == 0", "refuted"),
    ("X / n * n == X", "proved"),
    ("X / (n + 1) == X / n", "refuted"),
    ("0.1 * X == X / 10", "proved"),
    ("0.1 + 0.2 == 0.3", "proved"),
    ("1 / 3 == 0.3333333333333333", "refuted"),
    ("2 ** 10 == 1024", "proved"),
    ("0 == 0", "proved"),
    ("0 == 1", "refuted"),
    ("0 * X == 0", "proved"),
    ("X ** 0 == ones(n, n)", "proved"),
    ("grad(1 / a, a) == -1 / a ** 2", "proved"),
    ("D(X / a, a, b) == -b * X / a ** 2", "proved"),
    ("D(D(1 / a, a, b), a, b) == 2 * b ** 2 / a ** 3", "proved"),
]


@pytest.mark.parametrize(("says", "expected"), SCALARS)
def test_scalars(says: str, expected: str) -> None:
    assert verdict(says) == expected


def test_a_polynomial_that_vanishes_at_all_small_integers_is_not_zero() -> None:
    says = " * ".join(f"(a - ({k}))" for k in range(-9, 10)) + " == 0"
    decision = judged(says)
    assert decision.verdict == "refuted"


@pytest.mark.parametrize(
    "says", ["1 / (a - a) == 1", "X / (a / a - 1) == X", "1 / (n - n) * X == X"]
)
def test_division_by_what_is_identically_zero_is_refused(says: str) -> None:
    with pytest.raises(InputError, match=r"divi(sion|de)"):
        verdict(says)


# --- hypotheses -----------------------------------------------------------------------------------

ASSUMING = [
    ("tr(U.T @ U @ U.T @ U) == tr(V.T @ V @ V.T @ V)", ["U.T @ U == V.T @ V"], "proved"),
    ("norm2(U) == norm2(V)", ["U.T @ U == V.T @ V"], "proved"),
    ("U @ U.T == 0", ["U.T @ U == V.T @ V"], "refuted"),
    ("U == U @ V.T @ V", ["U.T @ U == V.T @ V"], "refuted"),
    ("X @ Y @ X == Y @ X @ X", ["X @ Y == Y @ X"], "proved"),
    ("X @ X @ Y @ Y == Y @ X @ Y @ X", ["X @ Y == Y @ X"], "proved"),
    ("X @ Y == X", ["X @ Y == Y @ X"], "refuted"),
    ("tr(X @ X @ X @ X) == tr(X)", ["X @ X == X"], "proved"),
    ("X == eye(n)", ["X @ X == X"], "refuted"),
    ("tr(X @ X) == n", ["X @ X == X"], "refuted"),
    ("A @ A.T @ A == A", ["A.T @ A == eye(n)"], "proved"),
    ("A @ A.T == eye(m)", ["A.T @ A == eye(n)"], "refuted"),
    ("S @ S @ S @ x == a ** 3 * x", ["S @ x == a * x"], "proved"),
    ("x.T @ S @ x == a", ["S @ x == a * x"], "refuted"),
    ("x.T @ S @ x == a", ["S @ x == a * x", "x.T @ x == 1"], "proved"),
    ("X == Z", ["X == Y", "Y == Z"], "proved"),
    ("X == Z", ["X == Y", "Y == 2 * Z"], "refuted"),
    ("X @ Y == 0", ["X == 0"], "proved"),
    ("grad(tr(X @ Y), X) == 0", ["X == 0"], "refuted"),
    ("grad(tr(X @ X), X) == 0", ["X == 0"], "proved"),
    ("sum(X @ x) == sum(x)", ["ones(1, n) @ X == ones(1, n)"], "proved"),
    ("diag(x) @ diag(x) == diag(x)", ["x * x == x"], "proved"),
    ("x.T @ x == sum(x)", ["x * x == x"], "proved"),
    ("a * X == 2 * X", ["a == 2"], "proved"),
    ("a ** 2 == b ** 2 + 2 * b * c + c ** 2", ["a == b + c"], "proved"),
    ("a ** 2 == b ** 2", ["a == b + c"], "refuted"),
    ("tr(X) * Y == Y", ["tr(X) == 1"], "proved"),
    ("tr(X) * Y == 2 * Y", ["tr(X) == 1"], "refuted"),
    ("X @ Y @ Z == Z", ["X @ Y == eye(n)"], "proved"),
    ("2 * X == 2 * Y", ["X == Y"], "proved"),
]


@pytest.mark.parametrize(("says", "assume", "expected"), ASSUMING)
def test_hypotheses(says: str, assume: list[str], expected: str) -> None:
    decision = judged(says, assume=assume, kinds={"U": [], "V": []})
    assert decision.verdict == expected
    if expected == "proved":
        assert all(line in decision.scope for line in assume)


@pytest.mark.parametrize("says", [says for says, _, expected in ASSUMING if expected == "proved"])
def test_without_the_hypothesis_it_is_refuted(says: str) -> None:
    assert verdict(says) == "refuted"


def test_a_hypothesis_holds_at_the_instant_only() -> None:
    more = '[flow.velocity]\nX = "Y"\n'
    assert verdict("d(X) == 0", assume=["X == 0"], more=more) == "refuted"
    assert verdict("d(X @ X) == 0", assume=["X == 0"], more=more) == "proved"


def test_symmetry_by_hypothesis_is_no_wrong_verdict() -> None:
    """A rule X -> X.T never ends; undecided is allowed, a wrong or a late answer is not."""
    start = time.perf_counter()
    assert verdict("X @ X.T == X.T @ X", assume=["X == X.T"]) in ("proved", "undecided")
    assert verdict("X == 0", assume=["X == X.T"]) in ("refuted", "undecided")
    assert time.perf_counter() - start < 10


CERTIFIED = [
    ("tr(U.T @ U @ U.T @ U) == tr(V.T @ V @ V.T @ V)", ["U.T @ U == V.T @ V"]),
    ("X @ X @ Y @ Y == Y @ X @ Y @ X", ["X @ Y == Y @ X"]),
    ("A @ A.T @ A == A", ["A.T @ A == eye(n)"]),
    ("S @ S @ S @ x == a ** 3 * x", ["S @ x == a * x"]),
    ("x.T @ X @ x == 1", ["X @ x == x", "x.T @ x == 1"]),
    ("x.T @ x == sum(x)", ["x * x == x"]),
    ("a ** 2 * X == (b + c) ** 2 * X", ["a == b + c"]),
    ("X == eye(n)", ["X @ Y == eye(n)", "Y == eye(n)"]),
]


@pytest.mark.parametrize(("says", "assume"), CERTIFIED)
def test_certificates_are_identities_without_the_hypotheses(says: str, assume: list[str]) -> None:
    """The printed cofactors, put into the oracle at matrices that satisfy no hypothesis."""
    decision = judged(says, assume=assume)
    *hypotheses, identity = decision.certificate
    define: dict[str, str] = {}
    for line in hypotheses:
        matched = re.fullmatch(r"(H\d+) := left - right of (.*)", line)
        assert matched is not None
        left, right = matched[2].split("==")
        define[matched[1]] = f"({left}) - ({right})"
    left, right = says.split("==")
    identity = identity.replace("left - right == ", f"({left}) - ({right}) == ")
    world = World(toml(identity, define=define))
    rng = random.Random(0)
    for _ in range(3):
        dims = dict(zip("mnr", rng.sample([2, 3, 4], 3), strict=True))
        values = world.draw(dims, rng)
        assert world.equal(dims, values)
        assert not all(world.equal(dims, values, line) for line in assume)


@pytest.mark.parametrize(("says", "assume"), CERTIFIED)
def test_a_wrong_cofactor_does_not_pass(
    says: str, assume: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []

    def record(*args: Any) -> bool:
        seen.append(args)
        return check_certificate(*args)

    monkeypatch.setattr(decide_module, "check_certificate", record)
    assert verdict(says, assume=assume) == "proved"
    ((claim, hypotheses, names, sizes, table, cells, rng),) = seen
    assert check_certificate(claim, hypotheses, names, sizes, table, cells, rng)
    (cell,) = cells
    for i, use in enumerate(cell.uses):
        for cofactor in (table.scale(use.cofactor, -1), table.scale(use.cofactor, 2), {}):
            changed = dataclasses.replace(use, cofactor=cofactor)
            uses = (*cell.uses[:i], changed, *cell.uses[i + 1 :])
            tampered = [dataclasses.replace(cell, uses=uses)]
            assert not check_certificate(claim, hypotheses, names, sizes, table, tampered, rng)


# --- second opinion -------------------------------------------------------------------------------


def lose_transpose(patch: pytest.MonkeyPatch) -> None:
    real = Expander._entry

    def entry(self: Expander, expr: Any, r: Any, c: Any) -> Poly:
        if expr.op == "T" and expr.rows == expr.cols:
            return self.entry(expr.args[0], r, c)
        return real(self, expr, r, c)

    patch.setattr(Expander, "_entry", entry)


def lose_minus(patch: pytest.MonkeyPatch) -> None:
    real = Expander._entry

    def entry(self: Expander, expr: Any, r: Any, c: Any) -> Poly:
        poly = real(self, expr, r, c)
        return {mono: abs(value) for mono, value in poly.items()} if expr.op == "scale" else poly

    patch.setattr(Expander, "_entry", entry)


def swap_products(patch: pytest.MonkeyPatch) -> None:
    real = Expander._entry

    def entry(self: Expander, expr: Any, r: Any, c: Any) -> Poly:
        if expr.op == "matmul" and expr.args[0].shape == expr.args[1].shape:
            expr = ex.matmul(*sorted(expr.args, key=str))
        return real(self, expr, r, c)

    patch.setattr(Expander, "_entry", entry)


def forget_exponent(patch: pytest.MonkeyPatch) -> None:
    real = Table.derive

    def derive(self: Table, poly: Poly, of_atom: Any) -> Poly:
        flat = {tuple((n, 1) for n, _ in mono): value for mono, value in poly.items()}
        return real(self, flat, of_atom)

    patch.setattr(Table, "derive", derive)


def forget_dimension(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "dimension", lambda self, dim: self.constant(1))


def always_equal_indices(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "delta", lambda self, one, other: self.constant(1))


def half_a_product_rule(patch: pytest.MonkeyPatch) -> None:
    real = Expander._component_change

    def change(self: Expander, key: Any, motion: Any, below: int) -> Poly | None:
        poly = real(self, key, motion, below)
        return dict(list(poly.items())[:1]) if poly else poly

    patch.setattr(Expander, "_component_change", change)


def everything_symmetric(patch: pytest.MonkeyPatch) -> None:
    real = Expander._symbol

    def symbol(self: Expander, name: str, rows: Any, cols: Any, r: Any, c: Any) -> Poly:
        if rows == cols and isinstance(r, int) and isinstance(c, int) and r < 0 and c < 0:
            head = Head(name, (-1, -1), (str(rows), str(cols)), SYMMETRIC)
            sign, mono = self.table.product([(head, (r, c))])
            return {mono: sign}
        return real(self, name, rows, cols, r, c)

    patch.setattr(Expander, "_symbol", symbol)


def skew_taken_for_symmetric(patch: pytest.MonkeyPatch) -> None:
    real = Kinds.__init__

    def init(self: Kinds, setting: Any, table: Table) -> None:
        real(self, setting, table)
        self.symmetry = dict.fromkeys(self.symmetry, SYMMETRIC)

    patch.setattr(Kinds, "__init__", init)


def wrong_sign_of_inverse(patch: pytest.MonkeyPatch) -> None:
    real = Expander._factor_motion

    def motion(self: Expander, name: str, *rest: Any) -> Poly | None:
        poly = real(self, name, *rest)
        return self.table.scale(poly, -1) if poly and name.endswith("^-1") else poly

    patch.setattr(Expander, "_factor_motion", motion)


def merge_components(patch: pytest.MonkeyPatch) -> None:
    """Labels of paths forgotten: X @ Y and Y @ X get one key."""
    real = canonical_module.canonical

    def merged(factors: Any) -> Any:
        sign, key = real(factors)
        return sign, tuple(sorted(key, key=lambda factor: factor[0])) if sign else key

    import nonmixing.algebra.terms as terms

    def wrong(factors: Any, tick: Any = None) -> Any:
        sign, key = merged(factors)
        named: dict[int, int] = {}
        renamed = tuple(
            (h, tuple(s if s < 0 else named.setdefault(s, len(named)) for s in sorted(slots)))
            for h, slots in key
        )
        return sign, renamed

    patch.setattr(terms, "canonical", wrong)


def without_words(patch: pytest.MonkeyPatch) -> None:
    """Everything goes the long way, through the index form."""

    def form(*_: Any) -> Any:
        raise Unsuited

    patch.setattr(Words, "form", form)


SABOTAGE: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (lose_transpose, "X.T == X"),
    (lose_transpose, "tr(X.T @ Y) == tr(X @ Y)"),
    (lose_minus, "X - Y == X + Y"),
    (lose_minus, "norm2(A - B) == norm2(A + B)"),
    (swap_products, "X @ Y == Y @ X"),
    (forget_exponent, "grad(tr(X) ** 2, X) == eye(n)"),
    (forget_exponent, "grad(a ** 3, a) == 1"),
    (forget_exponent, "D(tr(X) ** 3, X, Y) == tr(Y)"),
    (forget_dimension, "tr(eye(n)) * X == X"),
    (forget_dimension, "norm2(O) == 1"),
    (always_equal_indices, "eye(n) == ones(n, n)"),
    (half_a_product_rule, "D(X @ Y @ X, X, Z) == X @ Y @ Z"),
    (everything_symmetric, "X.T == X"),
    (everything_symmetric, "tr(X @ Y @ Z) == tr(X @ Z @ Y)"),
    (skew_taken_for_symmetric, "K.T == K"),
    (skew_taken_for_symmetric, "tr(K @ X) == tr(K @ X.T)"),
    (wrong_sign_of_inverse, "D(inv(G), G, X) == inv(G) @ X @ inv(G)"),
    (merge_components, "X.T == X"),
]


@pytest.mark.parametrize(("sabotage", "says"), SABOTAGE)
def test_the_second_opinion_notices(
    sabotage: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(says) == "refuted"
    claim = statement(says)
    without_words(monkeypatch)
    sabotage(monkeypatch)
    with pytest.raises(Disagreement) as caught:
        decide(claim, timeout=10)
    assert "\n" not in str(caught.value)


def test_a_sabotaged_certificate_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from nonmixing.algebra import hypotheses

    real = hypotheses._first_use

    def doubled(table: Table, *rest: Any) -> Any:
        found = real(table, *rest)
        if found is None:
            return None
        use, poly = found
        return dataclasses.replace(use, cofactor=table.scale(use.cofactor, 2)), poly

    claim = statement("norm2(U) == norm2(V)", assume=["U.T @ U == V.T @ V"])
    monkeypatch.setattr(hypotheses, "_first_use", doubled)
    with pytest.raises(Disagreement):
        decide(claim)


# --- limits ---------------------------------------------------------------------------------------


def within(seconds: float, says: str, timeout: float, **declarations: Any) -> Decision:
    claim = statement(says, **declarations)
    start = time.perf_counter()
    decision = decide(claim, timeout=timeout)
    assert time.perf_counter() - start < seconds
    return decision


POWERS = "norm2(A @ X @ X @ X @ X @ R) == norm2(A @ X @ R)"


def test_a_proof_whose_cofactors_have_many_indices_is_checked_soon() -> None:
    assert within(3, POWERS, 1, assume=["X @ X == X"]).verdict == "proved"


def test_time_limit() -> None:
    says = "tr(" + " @ ".join(["(X + Y)"] * 14) + ") == 0"
    decision = within(3, says, 0.3)
    assert decision.verdict == "undecided"
    assert "0.3 s" in decision.reason
    assert decision.seconds < 3


@pytest.mark.parametrize(
    ("says", "declarations"),
    [
        ("sum((X @ ones(n, 1)) ** 64) == 1", {}),
        ("E7 == 0", {"define": {"E0": "X"} | {f"E{i + 1}": f"E{i} @ E{i}" for i in range(7)}}),
        ("(A @ B) @ C == A @ (B @ C)", {"matrices": dict.fromkeys("ABC", (160, 160))}),
        (POWERS, {"assume": ["X @ X == X"]}),
    ],
    ids=["64 twins", "power 128", "160 rows", "certificate"],
)
def test_the_time_limit_is_kept(says: str, declarations: Any) -> None:
    """Nothing runs on for long after the time is up."""
    within(2.5, says, 0.5, **declarations)


@pytest.mark.parametrize(
    ("says", "declarations"),
    [
        ("X" + " @ X" * 127 + " == 0", {}),
        ("V.T @ V @ x == 2 * x", {"matrices": {"V": (784, 10), "x": (10, 1)}}),
        ("norm2(P" + " @ P.T @ P" * 3 + ") == r + 1", {}),
    ],
    ids=["power 128", "784 rows", "orthonormal chain"],
)
def test_obviously_false_claims_are_refuted_soon(says: str, declarations: Any) -> None:
    assert within(8, says, 6, **declarations).verdict == "refuted"


def test_large_sizes_are_proved_soon() -> None:
    matrices: Any = {"A": (300, 200), "B": (300, 200)}
    assert within(8, "tr(A.T @ B) == inner(A, B)", 6, matrices=matrices).verdict == "proved"


@pytest.mark.parametrize(
    ("operator", "count"),
    [(operator, count) for operator in "+*@" for count in (60, 200, 400, 1000)],
)
def test_long_chains_are_decided_or_refused_in_a_line(operator: str, count: int) -> None:
    says = f" {operator} ".join(["X"] * count)
    right = f"{count} * X" if operator == "+" else " ** ".join(["X", "3"])
    decision = in_a_line(lambda: within(20, f"{says} == {right}", 3))
    expected = "proved" if operator == "+" else "refuted"
    assert decision is None or decision.verdict == expected


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ("A" + " @ A" * 199 + " @ x", "A @ A"),
        ("K" + " @ K" * 299 + " @ x", "K @ K"),
        ("x.T" + " @ A" * 200 + " @ y", "x.T @ A @ A"),
        ("c" + " @ A" * 99 + " @ x", ""),
    ],
)
def test_long_products_that_end_in_a_vector(left: str, kept: str) -> None:
    """They are refuted, and their difference is written down, well within the time."""
    matrices: Any = {"A": ("n", "n"), "K": ("n", "n"), "x": ("n", 1), "y": ("n", 1), "c": (1, "n")}
    decision = within(8, f"{left} == 0", 6, matrices=matrices, kinds={"K": "skew"})
    assert decision.verdict == "refuted"
    assert kept in decision.difference


@pytest.mark.parametrize(
    "says",
    [
        "((a**64)**64)**64 == a",
        "(((((a+1)**64)**64)**64)**64)**64 == 0",
        "(((a**64)**64)**8) == a**2",
    ],
)
def test_towers_of_powers_keep_the_limit(says: str) -> None:
    """No verdict is lost to numbers that nobody could print."""
    decision = within(12, says, 4)
    assert decision.verdict in ("refuted", "undecided")
    assert (
        decision.counterexample is None
        or max(map(len, map(str, decision.counterexample.left[0]))) < 4300
    )


@pytest.mark.parametrize(
    ("says", "assume"),
    [("X == 0", ["1/n == 1"]), ("X == 0", ["1/(n - 1) == 1"]), ("X == a*X", ["1/(a + 1) == 1"])],
)
def test_a_number_does_not_lead_a_rule(says: str, assume: list[str]) -> None:
    """1 -> 1/n would be used until the limit."""
    assert "1200" not in judged(says, assume=assume).difference


def test_threads_share_the_recursion_limit() -> None:
    """One that is done does not take it away from those that are deep."""
    deep = statement(" @ ".join(["X", "Y"] * 250) + " == " + " @ ".join(["X", "Y"] * 250))
    light = "X @ Y == Y @ X"
    before = sys.getrecursionlimit()
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(decide, deep if i % 3 == 0 else statement(light)) for i in range(30)]
        verdicts = [job.result().verdict for job in jobs]
    assert verdicts == ["proved" if i % 3 == 0 else "refuted" for i in range(30)]
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("says", ["-" * 390 + "X == X", "X" + ".T" * 380 + " == X"])
def test_deep_nesting_is_decided_or_refused_in_a_line(says: str) -> None:
    assert in_a_line(lambda: verdict(says)) in ("proved", None)


@pytest.mark.parametrize(
    "number", ["9" * 4000 + " * " + "9" * 4000, "((2 ** 64) ** 64) ** 64", "1e300 ** 60"]
)
def test_huge_numbers_are_no_crash(number: str) -> None:
    assert in_a_line(lambda: verdict(f"{number} * X == X")) in ("refuted", None)


def test_an_expansion_that_is_too_large_is_undecided_or_decided() -> None:
    names = " ".join(f"s{i}" for i in range(30))
    says = "(" + " + ".join(names.split()) + ") ** 12 == 0"
    decision = within(10, says, 2, scalars=names)
    assert decision.verdict in ("refuted", "undecided")


# --- the decision's words -------------------------------------------------------------------------


def test_scope_in_words() -> None:
    assert judged("A @ A.T == (A @ A.T).T").scope == "every m, n"
    assert judged("a * b == b * a").scope == "all values"
    assert judged("A == 2 * A").scope == "already for m = n = 1"
    assert judged("A == -A").counterexample is not None
    at_two = judged("X @ Y == X", matrices={"X": (2, 2), "Y": (2, 2)})
    assert at_two.scope == "already for the values below"
    scope = judged("norm2(U) == norm2(V)", assume=["U.T @ U == V.T @ V"]).scope
    assert scope.endswith("with U.T @ U == V.T @ V")


def test_same_claim_same_counterexample() -> None:
    says = "X @ Y @ S == S @ Y @ X"
    one, other = judged(says), judged(says)
    assert one.counterexample == other.counterexample


def test_counterexamples_are_small() -> None:
    decision = judged("(S @ T).T == S @ T")
    assert decision.counterexample is not None
    assert dict(decision.counterexample.dims) == {"n": 2}
    for rows in decision.counterexample.values.values():
        assert isinstance(rows, tuple)
        assert all(abs(entry) <= 1 for row in rows for entry in row)


def test_truth_value_is_being_proved() -> None:
    assert judged("X == X")
    assert not judged("X == 2 * X")


@pytest.mark.parametrize("expression", ["inv(X)", "inv(G + H)", "inv(X @ G)", "inv(X.T @ X)"])
def test_inverse_of_what_is_not_declared_invertible_is_refused(expression: str) -> None:
    with pytest.raises(InputError, match="invertible") as caught:
        verdict(f"{expression} == X")
    assert "\n" not in str(caught.value)


def test_importing_the_prover_loads_neither_numpy_nor_sympy() -> None:
    code = (
        "import sys; from nonmixing.algebra import decide, load_claims; "
        f"claim, = load_claims({toml('grad(norm2(A), A) == 2 * A')!r}, 'x'); "
        "assert decide(claim); "
        "print([m for m in ('numpy', 'sympy', 'scipy', 'torch', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_random_orthonormal_matrices_of_the_oracle_are_orthonormal() -> None:
    rng = random.Random(0)
    for rows, cols in ((3, 3), (4, 2), (1, 1)):
        drawn = draw_matrix(rows, cols, {"orthonormal"}, rng)
        gram = drawn.T @ drawn
        assert (gram == array([[int(i == j) for j in range(cols)] for i in range(cols)])).all()


# --- contradictory hypotheses ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "assume",
    [
        ["X == 0", "X == eye(n)"],
        ["a == 1", "a == 2"],
        ["x.T @ x == 1", "x == 0"],
        ["X @ Y == eye(n)", "X == 0"],
        ["X @ X == X", "X @ X == X + eye(n)"],
    ],
)
def test_contradictory_assumptions_are_named(assume: list[str]) -> None:
    decision = judged("X @ Y @ x * a == 3 * Y @ X @ x", assume=assume)
    assert decision.verdict == "undecided"
    assert "contradict" in decision.reason


@pytest.mark.parametrize(
    "assume", [["X == 0", "Y == X"], ["eye(n) == ones(n, n)", "X == Y"], ["a == 1", "b == a + 1"]]
)
def test_assumptions_that_can_hold_are_not_called_contradictory(assume: list[str]) -> None:
    assert "contradict" not in judged("X @ Y * a == b * Y @ X", assume=assume).reason


def test_orthogonal_matrices_are_tried_beyond_size_two() -> None:
    """It holds up to n = 2; a permutation of three in a circle refutes it."""
    assert judged("O * O == (O * O).T").scope == "already for n = 3"


def test_a_certificate_over_a_product_of_dimensions_says_so() -> None:
    """There is no matrix notation for its cofactors; it is checked as any other."""
    decision = judged("vec(O.T @ O @ X + O.T @ x @ y.T @ O) == vec(X + O.T @ x @ y.T @ O)")
    assert decision.verdict == "proved"
    assert "products of dimensions" in decision.certificate[-1]


def test_divisors_do_not_vanish_in_a_counterexample() -> None:
    """Not even where the derivative has lost what they divide."""
    found = judged("D(X @ X + Y / a, X, Z) == 2 * X @ Z").counterexample
    assert found is not None
    assert found.values["a"] != 0


@pytest.mark.parametrize(
    "says",
    [
        "phi(a * x / a) == phi(x)",
        "phi(tr(eye(n)) / n * X) == phi(X)",
        "phi(x / (a * b)) == phi(x / b / a)",
        "1 / (1 / a) == a",
        "phi(a ** 2 * x / a) == phi(a * x)",
    ],
)
def test_reciprocals_cancel_inside_opaque_functions(says: str) -> None:
    assert verdict(says, more="[functions]\nphi = {}") == "proved"


@pytest.mark.parametrize(
    "says",
    [
        "hstack(G @ inv(G) @ X, x) == hstack(X, x)",
        "blkdiag(O.T @ O @ X, x) == blkdiag(X, x)",
        "vec(O.T @ O @ X) == vec(X)",
        "kron(G @ inv(G) @ x, y) == kron(x, y)",
    ],
)
def test_kinds_that_are_equations_at_integer_sizes(says: str) -> None:
    """Expanded to entries, they are rules for single entries."""
    shapes: Any = {name: (2, 2) for name in "GOX"} | {"x": (2, 1), "y": (2, 1)}
    kinds: Any = {"G": "invertible", "O": "orthogonal"}
    assert verdict(says, matrices=shapes, kinds=kinds) == "proved"


def test_what_is_proved_at_integer_sizes_has_a_second_opinion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says = "X @ X - tr(X) * X + (tr(X) ** 2 - tr(X @ X)) / 2 * eye(2) == 0"
    claim = statement(says, matrices={"X": (2, 2)})
    real = decide_module.probably_equal
    calls: list[int] = []
    last = 0

    def last_is_false(*arguments: Any) -> bool:
        calls.append(0)
        return real(*arguments) and len(calls) != last

    monkeypatch.setattr(decide_module, "probably_equal", last_is_false)
    assert decide(claim).verdict == "proved"
    last = len(calls)
    calls.clear()
    with pytest.raises(Disagreement):
        decide(claim)


def test_integer_sizes_beside_orthonormal_columns() -> None:
    """Sizes at which they exist are tried, whichever of the two comes first."""
    says = "hstack(y.T, x.T) @ vstack(x, x) * P.T @ P == (y.T @ x + x.T @ x) * eye(r)"
    shapes: Any = {"x": (1, 1), "y": (1, 1)}
    assert verdict(says, matrices=shapes, kinds={"P": "orthonormal"}) == "proved"
