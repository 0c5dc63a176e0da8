"""Counterexamples as NumPy code: what a failure prints is run, and gives what it says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Identity, MatrixSymbol, Symbol, symbols

from nonmixing.algebra import Counterexample, Statement, decide, load_claims
from nonmixing.algebra.sympy_door import equation
from nonmixing.testing.paste import program, safe_names
from nonmixing.testing.strategies import expressions

DECLARED = """
[matrices]
A = ["m", "n"]
B = ["m", "n"]
X = ["n", "n"]
G = ["n", "n"]
O = ["n", "n"]
K = ["n", "n"]
x = ["n", 1]
z = ["n", 1]
W = ["r", "m"]
V = ["r", "n"]
P = ["p", "r"]
C = [2, 3]
[kinds]
G = "invertible"
O = "orthogonal"
K = "skew"
[scalars]
a = {}
[functions]
phi = {}
[define]
Q = "A @ X"
[flow.velocity]
A = "B @ X - a * A"
[step.update]
A = "A - a * B"
"""

FALSE = [
    "tr(X) * A == A",
    "norm2(A) == tr(X)",
    "sum(A) == a",
    "inner(A, B) == norm2(A)",
    "diag(x) @ X == X",
    "diagpart(X) == X",
    "sym(X) == X",
    "skew(X) == X",
    "inv(G) == G",
    "inv(G) @ x == x",
    "O @ O == O",
    "K @ K == K",
    "O @ x == x",
    "eye(n) + X == X @ X",
    "ones(m, n) == A",
    "A == zeros(m, n)",
    "A == 0",
    "kron(X, x) == kron(x, X)",
    "kron(A, B) == kron(B, A)",
    "vec(A) == vec(B)",
    "face_splitting(A, B) == face_splitting(B, A)",
    "hstack(A, B) == hstack(B, A)",
    "vstack(A, B) == vstack(B, A)",
    "blkdiag(A, B) == blkdiag(B, A)",
    "tensor(P, W, V) == 2 * tensor(P, W, V)",
    "contract(tensor(P, W, V), x) == P @ W",
    "phi(A) == A",
    "phi(A) == phi(B)",
    "dphi(A) * A == phi(A)",
    "ddphi(A) == dphi(A)",
    "d(phi(A)) == dphi(A)",
    "d(Q) == Q",
    "after(Q) == Q - a * B",
    "grad(norm2(A @ X), A) == A @ X @ X",
    "grad(tr(X @ X @ X), X) == 3 * X @ X",
    "D(A @ A.T, A, B) == A @ B.T",
    "expect(z.T @ X @ z, z) == sum(X)",
    "expect(norm2(A @ z), z) == 1",
    "A / m == A / n",
    "A / (a + 1) == A",
    "a ** -2 * A == A",
    "A ** 3 == A",
    "tr(X) @ x.T == x.T",
    "x @ tr(X) == x",
    "hstack(tr(X), x.T) == hstack(x.T, tr(X))",
    "-A @ X + A @ -X == 2 * A @ X",
    "C @ C.T == 2 * C @ C.T",
    "tr(A @ A.T) * tr(X) ** 2 + a == sum(A) / 3",
]


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "pasted", "exec"), names)
    return names


def refuted(statement: Statement) -> Counterexample:
    found = decide(statement).counterexample
    assert found is not None, statement.says
    return found


def check(statement: Statement, found: Counterexample) -> str:
    """Both sides computed by the pasted code are those of the counterexample, and differ."""
    code = program(statement, found)
    names = run(code)
    for side, exact in (("left", found.left), ("right", found.right)):
        wanted = np.array(exact, dtype=float)
        got = names[side] * np.ones_like(wanted)  # a 0 may stand for a matrix
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, err_msg=code)
    assert not np.allclose(names["left"], names["right"]), code
    return code


@pytest.mark.parametrize("says", FALSE)
def test_every_function_of_the_language(says, capsys):
    (statement,) = load_claims(f'{DECLARED}[[claim]]\nid = "c"\nsays = "{says}"\n', "c")
    code = check(statement, refuted(statement))
    assert "exact value" not in code, "the formulas themselves must be there"
    assert capsys.readouterr().out.strip()  # it prints the difference


def test_what_has_no_notation_is_given_by_its_value():
    (statement,) = load_claims(f'{DECLARED}[[claim]]\nid = "c"\nsays = "A == B"\n', "c")
    code = program(None, refuted(statement))
    assert code.count("its exact value") == 2
    assert not np.allclose(run(code)["left"], run(code)["right"])


m, n, r = symbols("m n r")
LETTERS = [MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)]


@settings(max_examples=40)
@given(expressions(LETTERS, (m, n)), expressions(LETTERS, (m, n)))
def test_random_statements(left, right):
    statement = equation(left, right)
    decision = decide(statement)
    if decision.counterexample is not None:
        check(statement, decision.counterexample)


@settings(max_examples=30)
@given(expressions(LETTERS), expressions(LETTERS), st.sampled_from([0, 1, 2]))
def test_random_scalars(left, right, shift):
    statement = equation(left, right + shift)
    decision = decide(statement)
    if decision.counterexample is not None:
        check(statement, decision.counterexample)


def test_names_that_python_does_not_take():
    k = Symbol("n'")
    odd = MatrixSymbol("U'", k, k)
    statement = equation(Symbol("lambda") * odd + MatrixSymbol("np", k, k), Identity(k) * 2)
    code = check(statement, refuted(statement))
    assert "lambda_ = " in code
    assert "np_ = " in code
    names = safe_names(["U'", "U_", "left", "1x", "\\theta", "tr"])
    assert names == {
        "U'": "U__",
        "U_": "U_",
        "left": "left_",
        "1x": "_1x",
        "\\theta": "_theta",
        "tr": "tr_",
    }
