"""SymPy: its matrix expressions and noncommutative symbols to prove, explicit matrices to refute.

"true" needs the difference of the sides to vanish at symbolic sizes (or, where all sizes are
integers, entry by entry as polynomials); "false" needs integer matrices at which they differ.
Agreement of explicit matrices at some sizes settles nothing.
"""

from __future__ import annotations

from typing import Any

import sympy as _sympy
from sympy.matrices import expressions as _expressions

from judges.answer import Answer, CannotExpressError
from judges.reading import prepare
from judges.sympy_entries import proved_at_stated_sizes, refuted
from judges.sympy_matrices import Writer, split_traces
from judges.sympy_words import Words
from nonmixing.algebra import Statement
from nonmixing.algebra import expr as ex

__all__ = ["judge", "prepare"]

# SymPy carries no usable types for its matrix expressions: `Any` stands for one, and for the
# modules that make them.
sympy: Any = _sympy
mx: Any = _expressions

PREDICATES = ("symmetric", "diagonal", "orthogonal", "invertible")

# What SymPy raises on matrix expressions that it cannot treat; anything else is an error.
UNABLE = (
    CannotExpressError,
    NotImplementedError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
)


def judge(statement: Statement) -> Answer:
    """Prove, else refute, else abstain."""
    why = "the difference does not vanish, and no counterexample was found"
    try:
        route = _proved(statement)
        if route:
            return Answer("true", proof=True, how=route)
    except UNABLE as error:
        why = f"{type(error).__name__}: {error}"
    try:
        if proved_at_stated_sizes(statement):
            return Answer("true", proof=True, how="entries at the stated sizes")
        if refuted(statement):
            return Answer("false", counterexample=True, how="explicit matrices")
    except CannotExpressError as error:
        why = f"{why}; {error}"
    return Answer("abstains", how=why)


def _proved(statement: Statement) -> str:
    """The route that shows the sides equal, or an empty string.

    Noncommutative symbols go first: on these claims they prove all that expanding matrix
    expressions does, and a third more, in a quarter of the time.
    """
    if any(equation.left.op != "symbol" for equation in statement.assume):
        raise CannotExpressError("a hypothesis that is no value of a symbol")
    writer = Writer(statement.setting)
    difference = _difference(statement, writer)
    for equation in statement.assume:
        symbol = writer.symbol(str(equation.left.data))
        zero = mx.ZeroMatrix(*symbol.shape)
        value = zero if ex.is_zero_literal(equation.right) else writer.write(equation.right)
        difference = difference.xreplace({symbol: value})
    try:
        if Words(statement.setting.kinds).is_zero(difference):
            return "noncommutative symbols"
    except CannotExpressError:
        if _vanishes(difference, statement, writer):
            return "matrix expressions"
    return ""


def _difference(statement: Statement, writer: Writer) -> Any:
    left, right = statement.left, statement.right
    if ex.is_zero_literal(right):
        return writer.write(left)
    if ex.is_zero_literal(left):
        return writer.write(right)
    return writer.write(left) - writer.write(right)


def _vanishes(difference: Any, statement: Statement, writer: Writer) -> bool:
    """Whether expanding, refining by the kinds, and evaluating leaves nothing."""
    facts = [
        getattr(sympy.Q, kind)(writer.symbol(name))
        for name, kinds in statement.setting.kinds.items()
        for kind in sorted(kinds)
        if kind in PREDICATES
    ]
    if getattr(difference, "is_Matrix", False):
        reduced = difference.doit().expand().doit()
    else:
        reduced = split_traces(difference)
    if facts:
        reduced = sympy.refine(reduced, sympy.And(*facts)).doit()
    return reduced == 0 or isinstance(reduced, mx.ZeroMatrix)
