"""Broken variants of a statement, made by one program: does the prover notice each of them?

Every mutant differs from its statement in one place of one side, or lacks one hypothesis:

- a sign flipped, a term dropped, a term doubled;
- a matrix factor dropped, doubled, or swapped with its neighbour, where the shapes still fit;
- a transpose lost, where the shapes still fit;
- an assumed equation or a declared kind dropped.

A mutant of a true statement should be refuted; one that is proved says the same as its statement,
or happens to be true as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction

from nonmixing.algebra import expr as ex
from nonmixing.algebra.node import Expr
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.setting import Statement, names_of
from nonmixing.errors import InputError, ShapeError

_OPAQUE = frozenset({"grad", "D", "d", "after", "expect", "apply"})
"""Operations that are mutated as a whole, and not inside."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A broken variant.

    Attributes:
        change: what was done, in words.
        statement: the variant.
    """

    change: str
    statement: Statement


def mutants(statement: Statement) -> Iterator[Mutant]:
    """All mutants of a statement, each once."""
    seen = {(statement.left, statement.right)}
    for side in ("left", "right"):
        original: Expr = getattr(statement, side)
        if ex.is_zero_literal(original):
            continue
        for change, mutated in _variants(original):
            left = mutated if side == "left" else statement.left
            right = mutated if side == "right" else statement.right
            if (left, right) in seen:
                continue
            seen.add((left, right))
            variant = dataclasses.replace(
                statement,
                left=left,
                right=right,
                left_text=to_text(left),
                right_text=to_text(right),
            )
            yield Mutant(f"{side}: {change}", variant)
    yield from _fewer_hypotheses(statement)


def _fewer_hypotheses(statement: Statement) -> Iterator[Mutant]:
    for number, equation in enumerate(statement.assume):
        rest = statement.assume[:number] + statement.assume[number + 1 :]
        yield Mutant(f"without {equation.says}", dataclasses.replace(statement, assume=rest))
    setting = statement.setting
    for name in names_of(statement).matrices:
        for kind in sorted(setting.kinds_of(name) - {"constant", "invertible"}):
            kinds = {**setting.kinds, name: setting.kinds_of(name) - {kind}}
            without = dataclasses.replace(setting, kinds=kinds)
            variant = dataclasses.replace(statement, setting=without)
            yield Mutant(f"{name} no longer {kind}", variant)


def _variants(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """Every change at this node, then every change below it."""
    yield from _signs_and_terms(expr)
    yield from _factors(expr)
    if expr.op == "T" and expr.rows == expr.cols:
        yield f"transpose of {_short(expr.args[0])} lost", expr.args[0]
    if expr.op in _OPAQUE:
        return
    for place, arg in enumerate(expr.args):
        for change, mutated in _variants(arg):
            args = (*expr.args[:place], mutated, *expr.args[place + 1 :])
            try:
                yield change, ex.rebuilt(expr, args)
            except (ShapeError, InputError):
                continue  # the change does not fit here


def _signs_and_terms(expr: Expr) -> Iterator[tuple[str, Expr]]:
    if expr.op != "add":
        if expr.op in ("matmul", "symbol", "T", "scale", "times", "tr", "total", "diag"):
            yield f"sign of {_short(expr)} flipped", ex.negative(expr)
        return
    for place, term in enumerate(expr.args):
        before, after = expr.args[:place], expr.args[place + 1 :]
        yield f"{_short(term)} dropped", ex.add(*before, *after)
        doubled = ex.multiply(ex.number(Fraction(2)), term)
        yield f"{_short(term)} doubled", ex.add(*before, doubled, *after)


def _factors(expr: Expr) -> Iterator[tuple[str, Expr]]:
    if expr.op not in ("matmul", "times", "kron"):
        return
    left, right = expr.args
    for kept, gone in ((left, right), (right, left)):
        if kept.shape == expr.shape:
            yield f"factor {_short(gone)} dropped", kept
    if expr.op != "matmul":
        return
    for factor, doubled in ((left, (left, left, right)), (right, (left, right, right))):
        if factor.rows == factor.cols:
            product = ex.matmul(ex.matmul(doubled[0], doubled[1]), doubled[2])
            yield f"factor {_short(factor)} doubled", product
    if right.cols == left.rows and (right.rows, left.cols) == expr.shape:
        yield f"{_short(left)} and {_short(right)} swapped", ex.matmul(right, left)


def _short(expr: Expr) -> str:
    text = to_text(expr)
    return text if len(text) <= 40 else text[:37] + "..."
