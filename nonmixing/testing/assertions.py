"""Assertions that the prover decides, for all dimensions at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from nonmixing.algebra import Counterexample, Decision, Equation, Statement
from nonmixing.algebra import expr as ex
from nonmixing.algebra.node import Expr
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.text import same_shape
from nonmixing.claim import proof
from nonmixing.errors import InputError
from nonmixing.testing.failure import explain, refusing_at_the_call, verdict_line
from nonmixing.testing.paste import without_derivatives
from nonmixing.verdict import Verdict

if TYPE_CHECKING:
    from nonmixing.flow import GradientFlow

# SymPy's expressions carry no usable types; `Any` stands for one of them below.


@refusing_at_the_call
def assert_proved(lhs: Any, rhs: Any = None, assuming: Sequence[Any] = ()) -> Verdict:
    """Assert that two SymPy expressions are equal, for all dimensions.

    Args:
        lhs: the left side; or, alone, an `Eq`, or a `Statement` of a claim file.
        rhs: the right side, of the same shape.
        assuming: equations (`Eq`) and predicates (`Q.symmetric(X)`) that may be used.

    Returns:
        The verdict, `proved`.

    Raises:
        AssertionError: refuted or undecided; the message has both sides, their difference, and the
            counterexample as NumPy code.
        InputError: an expression outside the language.
        ShapeError: shapes that do not fit.
    """
    __tracebackhide__ = True
    statement, verdict = _settled(lhs, rhs, assuming)
    return _expected("proved", statement, verdict)


@refusing_at_the_call
def assert_refuted(lhs: Any, rhs: Any = None, assuming: Sequence[Any] = ()) -> Counterexample:
    """Assert that two SymPy expressions are not equal for all dimensions and values.

    Args:
        lhs: as for `assert_proved`.
        rhs: as for `assert_proved`.
        assuming: as for `assert_proved`.

    Returns:
        The counterexample, in exact arithmetic.

    Raises:
        AssertionError: proved or undecided.
        InputError: an expression outside the language.
        ShapeError: shapes that do not fit.
    """
    __tracebackhide__ = True
    statement, verdict = _settled(lhs, rhs, assuming)
    found = _expected("refuted", statement, verdict).counterexample
    if found is None:
        raise TypeError(f"{verdict!r} has no counterexample")
    return found


@refusing_at_the_call
def assert_gradient(
    loss: Any, variable: Any, expected: Any, assuming: Sequence[Any] = ()
) -> Verdict:
    """Assert what the Frobenius gradient of a scalar in a matrix is, for all dimensions.

    Args:
        loss: a SymPy scalar.
        variable: a SymPy matrix symbol; the gradient has its shape, every entry free.
        expected: the gradient, as a SymPy expression.
        assuming: as for `assert_proved`.

    Returns:
        The verdict, `proved`.

    Raises:
        AssertionError: another gradient; the message says which it is.
        InputError: an expression outside the language.
        ShapeError: shapes that do not fit.
    """
    __tracebackhide__ = True
    from sympy import Basic, Equality

    from nonmixing.algebra import sympy_door

    given: list[Any] = [assuming] if isinstance(assuming, Basic) else list(assuming)
    equations = [item for item in given if isinstance(item, Equality)]
    sides = [side for item in equations for side in item.args]
    predicates = [item for item in given if not isinstance(item, Equality)]
    read = sympy_door.read([loss, variable, expected, *sides], predicates)
    slope, value = ex.grad(*read.exprs[:2]), read.exprs[2]
    same_shape(slope, value, "assert_gradient")
    pairs = zip(read.exprs[3::2], read.exprs[4::2], equations, strict=True)
    statement = Statement(
        "gradient",
        slope,
        value,
        read.setting,
        f"grad({loss}, {variable})",
        str(expected),
        tuple(Equation(one, other, f"{item.lhs} == {item.rhs}") for one, other, item in pairs),
    )
    verdict = proof(statement)
    derived = () if verdict else without_derivatives(slope, read.setting)
    notes = [f"the gradient is {to_text(derived)}"] if derived else []
    return _expected("proved", statement, verdict, notes)


@refusing_at_the_call
def assert_conserved(flow: GradientFlow, expr: Any) -> Decision:
    """Assert that an expression is constant along a gradient flow, for all dimensions.

    Args:
        flow: `nm.GradientFlow(loss, variables)`.
        expr: a SymPy expression; or what else `flow.conserves` takes.

    Returns:
        The decision, `proved`.

    Raises:
        AssertionError: its time derivative is not zero.
        InputError: no flow, or an expression outside the language.
    """
    __tracebackhide__ = True
    from nonmixing.flow import GradientFlow

    if not isinstance(cast("object", flow), GradientFlow):
        raise InputError(
            f"assert_conserved: the flow comes first, got {flow!r:.80}; "
            "make one with nm.GradientFlow(loss, variables)"
        )
    decision = flow.conserves(expr)
    if decision:
        return decision
    headline = f"{expr} is not conserved: {verdict_line(decision)}"
    raise AssertionError(explain(headline, _derivative(flow, expr, decision), decision))


def _settled(lhs: Any, rhs: Any, assuming: Sequence[Any]) -> tuple[Statement, Verdict]:
    if isinstance(lhs, Statement):
        if rhs is not None or assuming:
            raise InputError("a Statement has its own right side and assumptions; pass it alone")
        return lhs, proof(lhs)
    from nonmixing.algebra.sympy_door import equation

    statement = equation(lhs, rhs, assuming)
    return statement, proof(statement)


def _expected(
    word: str, statement: Statement, verdict: Verdict, notes: Sequence[str] = ()
) -> Verdict:
    """The verdict, if it is the one expected."""
    __tracebackhide__ = True
    if verdict.verdict == word:
        return verdict
    decision = verdict.decision
    if decision is None:  # a verdict of the prover always has one
        raise TypeError(f"{verdict!r} has no decision")
    headline = f"not {word}: {verdict_line(decision)}"
    raise AssertionError(explain(headline, statement, decision, notes))


def _derivative(flow: GradientFlow, expr: Any, decision: Decision) -> Statement | None:
    """The statement that the derivative of an expression is zero; None if it has no notation."""
    try:
        derivative = flow.derivative(expr)
    except InputError:
        return None
    setting = flow.setting
    if not isinstance(derivative, Expr):
        from nonmixing.algebra import sympy_door

        read = sympy_door.read([derivative])
        derivative, setting = read.exprs[0], read.setting
    return Statement(decision.id, derivative, ex.number(0), setting, decision.left, decision.right)
