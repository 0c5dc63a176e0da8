"""The assertions for a theorist's own tests: each passes, and each fails with its message."""

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sympy import Eq, Identity, MatrixSymbol, Q, Trace, ZeroMatrix, symbols

import nonmixing as nm
import nonmixing.testing as nt
from nonmixing.algebra import load_claims
from nonmixing.errors import InputError, NonmixingError, ShapeError
from nonmixing.testing import (
    assert_agree,
    assert_conserved,
    assert_gradient,
    assert_proved,
    assert_refuted,
)

m, n, r = symbols("m n r")
MATRICES: Any = [*(MatrixSymbol(x, m, r) for x in "UP"), MatrixSymbol("V", n, r)]
U, P, V = MATRICES
SQUARES: Any = MatrixSymbol("T", m, n), MatrixSymbol("A", n, n)
T, A = SQUARES
E = U * V.T - T
LOSS = nm.norm2(E) / 2


def message(assertion: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments, **options)
    return str(caught.value)


def pasted(text: str) -> dict[str, Any]:
    """The code at the end of a message, run as it stands."""
    _, _, code = text.partition("to be pasted:\n\n")
    assert code, text
    names: dict[str, Any] = {}
    exec(compile(code, "pasted", "exec"), names)
    return names


# --- the prover's assertions ----------------------------------------------------------------------


def test_the_contract():
    """The example of the design, word by word."""
    flow = nm.GradientFlow(nm.norm2(E) / 2, [U, V])
    assert_proved(flow.derivative(U * V.T), -E * V * V.T - U * U.T * E)


def test_proved():
    verdict = assert_proved((U * V.T).T, V * U.T)
    assert verdict.verdict == "proved"
    assert assert_proved(Eq(Trace(A.T), Trace(A)))
    assert assert_proved(A, A.T, assuming=[Q.symmetric(A)])
    assert assert_proved(P.T * P * U.T, U.T, [Eq(P.T * P, Identity(r))])


def test_not_proved(capsys):
    flow = nm.GradientFlow(LOSS, [U, V])
    text = message(assert_proved, flow.derivative(U * V.T), -E * V * V.T + U * U.T * E)
    assert text.splitlines()[:4] == [
        "not proved: refuted, already for m = n = r = 1",
        "  left          T*V*V.T + U*U.T*T - U*U.T*U*V.T - U*V.T*V*V.T",
        "  right         (T - U*V.T)*V*V.T + U*U.T*(-T + U*V.T)",
        "  left - right  2 * U @ U.T @ T - 2 * U @ U.T @ U @ V.T",
    ]
    names = pasted(text)
    left, right = int(names["left"][0, 0]), int(names["right"][0, 0])
    assert left != right
    assert capsys.readouterr().out == f"[[{left - right}]]\n"
    assert text.endswith(f"# exactly: left is [[{left}]], right is [[{right}]]")


def test_not_proved_names_its_hypotheses():
    equations = [Eq(U.T * U, Identity(r)), Q.symmetric(A)]
    text = message(assert_proved, U.T * U + Trace(A) * Identity(r), Identity(r), equations)
    assert "\n  assuming      A is symmetric\n  assuming      U.T*U == I\n" in text
    names = pasted(text)
    np.testing.assert_array_equal(names["U"].T @ names["U"], np.eye(len(names["left"])))


def test_hypotheses_about_other_matrices_are_named_if_an_equation_has_them():
    B, C = MatrixSymbol("B", n, n), MatrixSymbol("C", n, n)
    given = [Eq(B * A, A), Q.symmetric(B), Q.symmetric(C)]
    text = message(assert_proved, A * A, A, given)
    assert "\n  assuming      B is symmetric\n  assuming      B*A == A\n" in text
    assert "C is" not in text


def test_what_sympy_simplifies_needs_no_hypothesis():
    x = MatrixSymbol("x", n, 1)
    assert A.I * A * x == x
    assert assert_proved(A.I * A * x, x)
    text = message(assert_proved, A * T.T * U, T.T * U)
    assert "assuming" not in text
    assert "\n  assuming      A is invertible\n" in message(assert_proved, A.I, A)


def test_undecided_is_not_proved():
    """What positivity alone could settle."""
    text = message(assert_proved, U, ZeroMatrix(m, r), [Eq(U.T * U, ZeroMatrix(r, r))])
    first, because, *rest = text.splitlines()
    assert first == "not proved: undecided"
    assert because.startswith("  because       ")
    assert rest[:3] == ["  left          U", "  right         0", "  left - right  U"]
    assert "pasted" not in text
    assert "undecided" in message(assert_refuted, U, ZeroMatrix(m, r), [Eq(U.T * U, 0 * U.T * U)])


def test_refuted():
    found = assert_refuted(U * V.T, T)
    assert found.dims == {"m": 1, "n": 1, "r": 1}
    assert found.left != found.right


def test_not_refuted():
    text = message(assert_refuted, (U * V.T).T, V * U.T)
    assert text == (
        "not refuted: proved for every m, n, r\n"
        "  left          V*U.T\n  right         V*U.T\n  left - right  0"
    )


def test_a_statement_of_a_claim_file():
    text = '[matrices]\nX = ["n", "n"]\n[[claim]]\nid = "turned"\nsays = "X.T == X"'
    (statement,) = load_claims(text, "text")
    assert assert_refuted(statement).dims == {"n": 2}
    assert "\n  left          X.T\n" in message(assert_proved, statement)
    with pytest.raises(InputError, match="has its own right side"):
        assert_proved(statement, U)


def test_bad_input():
    with pytest.raises(ShapeError, match="different shapes"):
        assert_proved(U, V)
    with pytest.raises(InputError, match="expected an equation or two sides"):
        assert_proved(U)
    with pytest.raises(InputError, match="expected a SymPy expression"):
        assert_refuted(np.eye(2), np.eye(2))


def test_gradient():
    assert assert_gradient(LOSS, U, E * V)
    assert assert_gradient(LOSS, V, E.T * U)
    assert assert_gradient(Trace(A * A) / 2, A, A, assuming=[Q.symmetric(A)])
    scaled: list[Any] = [Eq(T, 2 * U * V.T)]
    assert assert_gradient(LOSS, U, -U * V.T * V, assuming=scaled)
    assert assert_gradient(LOSS, U, -U * V.T * V, scaled[0])


def test_another_gradient():
    text = message(assert_gradient, LOSS, U, 2 * E * V)
    assert "\n  right         (-2*T + 2*U*V.T)*V\n" in text
    assert "\n  left - right  T @ V - U @ V.T @ V\n" in text
    assert "\n  the gradient is -T @ V + U @ V.T @ V\n" in text
    names = pasted(text)
    assert names["left"] * 2 == names["right"] != 0
    with pytest.raises(ShapeError, match=r"assert_gradient: the sides have different shapes"):
        assert_gradient(LOSS, U, E)
    with pytest.raises(NonmixingError, match="scalar"):
        assert_gradient(E, U, E)


def test_conserved():
    flow = nm.GradientFlow(LOSS, [U, V])
    assert assert_conserved(flow, U.T * U - V.T * V)


def test_not_conserved():
    flow = nm.GradientFlow(LOSS, [U, V])
    text = message(assert_conserved, flow, U.T * U + V.T * V)
    assert text.splitlines()[:3] == [
        "U.T*U + V.T*V is not conserved: refuted, already for m = n = r = 1",
        "  left          d(U.T @ U + V.T @ V)",
        "  right         zeros(r, r)",
    ]
    assert "\n  left - right  2 * U.T @ T @ V + 2 * V.T @ T.T @ U - 2 * " in text
    names = pasted(text)
    u, v, t = names["U"], names["V"], names["T"]
    du, dv = -(u @ v.T - t) @ v, -(u @ v.T - t).T @ u
    derivative = du.T @ u + u.T @ du + dv.T @ v + v.T @ dv
    np.testing.assert_array_equal(names["left"], derivative)
    assert np.any(derivative)
    with pytest.raises(InputError, match=r"the flow comes first, got U\.T\*U"):
        assert_conserved(U.T * U, flow)  # pyright: ignore[reportArgumentType]


# --- trajectories ---------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 4.0, 41)
PROBLEM = nm.BilinearProblem(np.diag([3.0, 2.0]))


def solved(scale: float = 1e-2, times: Any = TIMES) -> nm.Trajectory:
    return nm.solve(PROBLEM, nm.balanced(PROBLEM, scale=scale, width=2, seed=0), times)


def recorded(scaled: float = 1.0, status: str = "ok") -> nm.Trajectory:
    exact = solved()
    left = [scaled * exact.factors(k).U for k in range(len(exact))]
    right = [exact.factors(k).V for k in range(len(exact))]
    return nm.Trajectory.from_arrays(TIMES, left, right, status=status)


def test_agree():
    exact = solved()
    result = assert_agree(nm.integrate(PROBLEM, exact.start, TIMES), exact)
    assert 0 < result.distance < 1e-6
    assert set(result.nulls) == {"frozen", "slowed", "hurried"}
    assert min(result.nulls.values()) > 0.1
    assert assert_agree(solved(times=TIMES[::2]), exact).distance < 1e-9
    assert assert_agree(recorded(1.01), exact, tolerance=0.011).distance == pytest.approx(0.01)


def test_disagree():
    text = message(assert_agree, recorded(1.01), solved())
    first, *rest = text.splitlines()
    assert re.fullmatch(
        r"recorded \(left\) and exact: M8 \(right\) disagree: 0\.01 of the largest entry, "
        r"tolerance 1e-06",
        first,
    )
    assert rest[0] == "  left          U @ V.T of recorded"
    assert rest[1] == "  right         U @ V.T of exact: M8"
    assert rest[2].startswith("  left - right  [0.0291, ")
    assert rest[3].startswith(
        "  worst at      t = 4 (state 40 of 41), entry (0, 0): 2.93506 and 2.906"
    )
    assert re.search(r"off by  frozen \S+  slowed \S+  hurried \S+$", rest[4])
    names = pasted(text)
    np.testing.assert_allclose(names["left"], 1.01 * names["right"])


def test_of_a_large_operator_a_part_is_shown():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(3, 9, 2)), rng.normal(size=(3, 8, 2))
    off = left.copy()
    off[2, 7] *= 1.5
    a, b = (nm.Trajectory.from_arrays([0.0, 1.0, 2.0], x, right) for x in (off, left))
    text = message(assert_agree, a, b, tolerance=0.1)
    names = pasted(text)
    assert names["left"].shape == (6, 6)
    assert "The operators[3:9, " in text
    rows = np.any(names["left"] != names["right"], axis=1)
    assert rows.tolist() == [False, False, False, False, True, False]


def test_agreement_that_says_nothing():
    exact = solved()
    text = message(assert_agree, exact, exact, tolerance=2.0)
    assert "but that says nothing: with a tolerance of 2 these pass as well: frozen (1), " in text
    assert "nulls=False" in text
    assert assert_agree(exact, exact, tolerance=2.0, nulls=False).nulls == {}
    assert "hurried" in message(assert_agree, exact, exact, tolerance=0.7)
    assert "frozen" not in message(assert_agree, exact, exact, tolerance=0.7)


def test_a_run_that_ended_early_agrees_with_nothing():
    text = message(assert_agree, recorded(status="diverged at t = 3"), solved())
    assert text == "the trajectory 'recorded' did not end well: diverged at t = 3"


def test_trajectories_that_cannot_be_compared():
    exact = solved()
    with pytest.raises(InputError, match=r"b: has no state at t = 0\.1 and 19 more"):
        assert_agree(exact, solved(times=TIMES[::2]))
    with pytest.raises(InputError, match="a: got ndarray; a Trajectory is expected"):
        assert_agree(np.eye(2), exact)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="tolerance: got -1"):
        assert_agree(exact, exact, tolerance=-1)
    other = nm.Trajectory.from_arrays([0.0], np.ones((1, 3, 1)), np.ones((1, 2, 1)))
    with pytest.raises(ShapeError, match=r"\(3, 2\) and \(2, 2\)"):
        assert_agree(other, exact)


# --- the package ----------------------------------------------------------------------------------


def test_importing_is_light(tmp_path):
    code = (
        "import sys, nonmixing.testing as nt\n"
        "heavy = ('torch', 'sympy', 'numpy', 'hypothesis', 'scipy')\n"
        "print([x for x in heavy if x in sys.modules])\n"
        "[getattr(nt, name) for name in nt.__all__]\n"
        "from nonmixing.testing import strategies\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.splitlines() == ["[]", "False True"]


def test_names():
    assert sorted(nt.__all__) == sorted(nt._HOME)
    for name in nt.__all__:
        assert name in dir(nt)
        assert getattr(nt, name).__doc__
    with pytest.raises(AttributeError, match="assert_prooved"):
        _ = nt.assert_prooved  # pyright: ignore[reportAttributeAccessIssue]


def test_strategies_without_hypothesis(tmp_path):
    (tmp_path / "hypothesis.py").write_text("raise ImportError('not here')")
    code = (
        "from nonmixing.errors import MissingExtra\n"
        "try:\n    import nonmixing.testing.strategies\n"
        "except MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "pip install 'nonmixing[testing]'" in done.stdout
