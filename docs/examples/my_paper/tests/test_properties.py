"""Laws that hold for every start, tried by hypothesis on small problems."""

import model
import numpy as np
from hypothesis import given, settings

import nonmixing as nm
from nonmixing.testing import assert_agree
from nonmixing.testing import strategies as nst


@settings(max_examples=20, deadline=None)
@given(nst.with_start(nst.generic_starts))
def test_small_steps_descend(drawn):
    """A small enough step never raises the loss."""
    problem, start = drawn
    U, V = model.step(start.U, start.V, problem.target, 1e-4)
    before = model.loss(start.U, start.V, problem.target)
    assert model.loss(U, V, problem.target) <= before + 1e-12


@settings(max_examples=5, deadline=None)
@given(nst.with_start(nst.balanced_starts))
def test_the_closed_form_is_the_flow(drawn):
    """Equation (8) against an integrator, from balanced starts; starts at rest agree too."""
    problem, start = drawn
    times = np.linspace(0.0, 1.0, 11)
    exact = nm.solve(problem, start, times)
    assert_agree(nm.integrate(problem, start, times), exact, nulls=False)
