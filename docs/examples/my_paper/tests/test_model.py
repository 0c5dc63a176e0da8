"""The code of the experiments computes the formulas of the paper."""

import model
from sympy import MatrixSymbol, symbols

import nonmixing as nm
from nonmixing.testing import assert_implements

m, n, r, rate = symbols("m n r rate")
U, V, T = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r), MatrixSymbol("T", m, n)
E = U * V.T - T
LOSS = nm.norm2(E) / 2


def test_loss():
    """The loss, exactly: its code is run on integers modulo a prime."""
    found = assert_implements(model.loss, LOSS, exactly=True)
    assert found.route == "prime field"


def test_gradients():
    """Both gradients; the formula is the loss alone."""
    assert_implements(model.gradients, LOSS, gradient_in=[U, V], exactly=True)


def test_step():
    """The update of equation (6)."""
    assert_implements(model.step, (U - rate * E * V, V - rate * E.T * U), exactly=True)
