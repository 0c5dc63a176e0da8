"""What a failed assertion says: both sides, the difference, and the counterexample as code.

The code stands at the margin, so that it can be pasted as it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from nonmixing.algebra import Decision, Statement
from nonmixing.errors import NonmixingError
from nonmixing.testing.paste import program

Given = ParamSpec("Given")
Found = TypeVar("Found")


def refusing_at_the_call(assertion: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let an assertion that refuses its input show the line of its call and one message.

    Where in the package an expression turned out not to fit says nothing to who wrote it. Only an
    error that carries a note keeps its frames: it was raised by the user's own function.
    """

    @wraps(assertion)
    def asserted(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        __tracebackhide__ = True
        try:
            return assertion(*args, **kwargs)
        except NonmixingError as error:
            if getattr(error, "__notes__", ()):
                raise
            raise error.with_traceback(None) from None

    return asserted


def explain(
    headline: str, statement: Statement | None, decision: Decision, notes: Sequence[str] = ()
) -> str:
    """The text of a failure.

    Args:
        headline: what was asserted and what came, in one line.
        statement: what was decided, so that the code computes its sides; None where its sides have
            no formula.
        decision: of it.
        notes: what else is to be said, below the sides.
    """
    lines = [headline]
    if decision.reason:
        lines.append(f"  because       {decision.reason}")
    lines += [f"  left          {decision.left}", f"  right         {decision.right}"]
    if decision.difference:
        lines.append(f"  left - right  {decision.difference}")
    if statement is not None:
        lines += [f"  assuming      {line}" for line in assumed(statement)]
    lines += [f"  {note}" for note in notes]
    if decision.counterexample is not None:
        lines += ["", "The counterexample, to be pasted:", ""]
        lines.append(program(statement, decision.counterexample))
    return "\n".join(lines)


def assumed(statement: Statement) -> list[str]:
    """The declared kinds of the names that occur in a side or an equation, and the equations."""
    sides = [side for each in statement.assume for side in (each.left, each.right)]
    names = frozenset[str]().union(*(e.names for e in (statement.left, statement.right, *sides)))
    kinds = statement.setting.kinds.items()
    declared = [f"{name} is {kind}" for name, many in kinds if name in names for kind in many]
    return [*sorted(declared), *(equation.says for equation in statement.assume)]


def verdict_line(decision: Decision) -> str:
    """The verdict and what it covers: `refuted, already for m = n = r = 1`."""
    scope = f", {decision.scope}" if decision.verdict == "refuted" else ""
    scope = f" for {decision.scope}" if decision.verdict == "proved" else scope
    return decision.verdict + scope
