"""An assertion that refuses its input shows the line of the test and one message."""

import re

import pytest

import nonmixing as nm
from nonmixing.algebra import sympy_door
from nonmixing.testing import assertions, implements

pytest_plugins = ["pytester"]

LOADED = nm.GradientFlow, sympy_door, assertions, implements
"""What a run inside this process imports is dropped after it, unless it was there before."""

REFUSALS = """
import numpy as np
from sympy import MatrixSymbol, Q, symbols

import nonmixing as nm
from nonmixing.testing import *

m, n, r = symbols("m n r")
U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
E = U * V.T - T
FLOW = nm.GradientFlow(nm.norm2(E) / 2, [U, V])
RUN = nm.Trajectory.from_arrays([0.0], np.ones((1, 2, 1)), np.ones((1, 2, 1)))
OTHER = nm.Trajectory.from_arrays([0.0], np.ones((1, 3, 1)), np.ones((1, 2, 1)))
NOISE = np.random.default_rng(0)


def written(U):
    U[0, 0] = 0
    return U


def deeper(U):
    return nm.BilinearProblem(U * np.nan)


def test_lost_transpose_in_gradient():
    assert_gradient(nm.norm2(E) / 2, U, E.T * V)


def test_lost_transpose_in_proved():
    assert_proved(E * V, E.T * V)


def test_shapes_of_the_sides():
    assert_refuted(E * V, V)


def test_lost_transpose_in_conserved():
    assert_conserved(FLOW, U.T * U - V * V.T)


def test_no_sympy():
    assert_proved("U", U)


def test_shapes_of_runs():
    assert_agree(RUN, OTHER)


def test_lost_transpose_in_implements():
    assert_implements(lambda U, V, T: E, E.T * V)


def test_wrong_shape():
    assert_implements(lambda U: U.T, U)


def test_input_changed():
    assert_implements(written, U)


def test_not_finite():
    assert_implements(lambda U: U + np.linalg.norm(U) * np.nan, U)


def test_not_deterministic():
    assert_implements(lambda U: U + NOISE.normal(size=U.shape), U)


def test_wrong_result():
    assert_implements(lambda U: "no", U)


def test_of_the_users_own():
    assert_implements(deeper, U)


def test_of_another_kind():
    assert_implements(lambda U: U.nothing, U)
"""

SAYS = {
    "lost_transpose_in_gradient": r"ShapeError: cannot multiply .* \(n x m\) by V \(n x r\): .*",
    "lost_transpose_in_proved": r"ShapeError: cannot multiply .* \(n x m\) by V \(n x r\): .*",
    "shapes_of_the_sides": r"ShapeError: .* different shapes.*",
    "lost_transpose_in_conserved": r"ShapeError: .*",
    "no_sympy": r"InputError: expected a SymPy expression, got .*",
    "shapes_of_runs": r"ShapeError: a and b: the operators are .*",
    "lost_transpose_in_implements": r"ShapeError: cannot multiply .*",
    "wrong_shape": r"WrongShape: .* is it transposed\?",
    "input_changed": r"InputChanged: written: it changes its argument 1 .*",
    "not_finite": r"NotFinite: .* is nan at .*",
    "not_deterministic": r"NotDeterministic: .* two calls with the same arrays differ .*",
    "wrong_result": r"WrongResult: .* returned str; .*",
}
"""By test, the class and the message."""


@pytest.fixture
def sections(pytester) -> dict[str, list[str]]:
    """What pytest prints of each of the tests above."""
    pytester.makepyfile(test_mine=REFUSALS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=len(SAYS) + 2)
    text = result.stdout.str().partition(" FAILURES ")[2].partition(" short test summary ")[0]
    parts = re.split(r"^_+ test_(\w+) _+$", text, flags=re.MULTILINE)[1:]
    return {
        name: [line.rstrip() for line in body.strip().splitlines()]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_refusals_are_short(sections):
    for name, says in SAYS.items():
        lines = sections[name]
        text = "\n".join(lines)
        (message,) = [line for line in lines if line.startswith("E ")]
        assert re.fullmatch(r"E +nonmixing\.(errors|testing\.calls)\." + says, message), text
        (pointed,) = [line for line in lines if line.startswith(">")]
        assert pointed.lstrip("> ").startswith("assert_"), text
        places = [line for line in lines if re.search(r"\.py:\d+:", line)]
        assert len(places) == 1, text
        assert places[0].startswith("test_mine.py:"), text
        assert len(lines) <= 8, text


def test_errors_of_user_code_keep_its_frames(sections):
    text = "\n".join(sections["of_the_users_own"])
    assert "in deeper" in text or "def deeper" in text
    assert "E           (deeper was called with float64 numpy arrays at " in text
    text = "\n".join(sections["of_another_kind"])
    assert "has no attribute 'nothing'" in text
    assert "nonmixing/testing" not in text.replace("\\", "/")
