"""Derivations of the paper in SymPy; each holds for every m, n and r."""

from sympy import Eq, MatrixSymbol, symbols

import nonmixing as nm
from nonmixing.testing import (
    assert_conserved,
    assert_gradient,
    assert_proved,
    assert_refuted,
)

m, n, r = symbols("m n r")
U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
E = U * V.T - T
LOSS = nm.norm2(E) / 2
FLOW = nm.GradientFlow(LOSS, [U, V])


def test_gradient():
    """Equation (3)."""
    assert_gradient(LOSS, U, E * V)


def test_flow_of_the_operator():
    """Equation (4)."""
    assert_proved(FLOW.derivative(U * V.T), -E * V * V.T - U * U.T * E)


def test_balance():
    """Equation (5)."""
    assert_conserved(FLOW, U.T * U - V.T * V)


def test_from_a_balanced_start():
    """Equation (7): where UᵀU = VᵀV, the flow of U Uᵀ needs no V Vᵀ."""
    Q = U * V.T
    balanced = Eq(V.T * V, U.T * U)
    assert_proved(
        FLOW.derivative(U * U.T),
        T * Q.T + Q * T.T - 2 * U * U.T * U * U.T,
        assuming=[balanced],
    )


def test_it_needs_balance():
    """Remark 3: from another start it is wrong, and here is one."""
    Q = U * V.T
    found = assert_refuted(FLOW.derivative(U * U.T), T * Q.T + Q * T.T - 2 * U * U.T * U * U.T)
    assert found.dims == {"m": 1, "n": 1, "r": 1}
