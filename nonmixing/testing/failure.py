"""What a failed assertion says: both sides, the difference, and the counterexample as code."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from nonmixing.algebra import Decision, Statement
from nonmixing.testing.paste import program

MARGIN = "    "


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
        lines.append(indent(program(statement, decision.counterexample), MARGIN))
    return "\n".join(lines)


def assumed(statement: Statement) -> list[str]:
    """The declared kinds of the names that occur, and the equations."""
    names = statement.left.names | statement.right.names
    kinds = statement.setting.kinds.items()
    declared = [f"{name} is {kind}" for name, many in kinds if name in names for kind in many]
    return [*sorted(declared), *(equation.says for equation in statement.assume)]


def verdict_line(decision: Decision) -> str:
    """The verdict and what it covers: `refuted, already for m = n = r = 1`."""
    scope = f", {decision.scope}" if decision.verdict == "refuted" else ""
    scope = f" for {decision.scope}" if decision.verdict == "proved" else scope
    return decision.verdict + scope
