"""Sums written in the user's own abbreviations where that is shorter.

An abbreviation E = Q - T in which a symbol T stands alone defines T = Q - E as well. Putting that
in T's place, exactly, often turns a long difference into the short one that the user would write.
"""

from __future__ import annotations

import dataclasses

from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import Dim, Index
from nonmixing.algebra.expand import Expander, Motion
from nonmixing.algebra.kinds import Kinds
from nonmixing.algebra.node import Expr
from nonmixing.algebra.readback import Reader
from nonmixing.algebra.setting import Setting
from nonmixing.algebra.terms import Poly, Table


def shortest(poly: Poly, setting: Setting, table: Table) -> tuple[Poly, Setting]:
    """The polynomial, one symbol eliminated through an abbreviation if that leaves fewer terms.

    Returns:
        The polynomial, and the setting in which its symbols are declared.
    """
    best, declared = poly, setting
    for name, body in setting.abbreviations.items():
        folded = _folded(poly, name, body, setting, table)
        if folded is not None and len(folded[0]) < len(best):
            best, declared = folded
    return best, declared


def in_short(poly: Poly, setting: Setting, table: Table, rows: Dim, cols: Dim) -> str:
    """The sum as text, in the abbreviations of the setting where that is shorter."""
    shorter, declared = shortest(poly, setting, table)
    return Reader(declared, table, rows, cols).text(shorter)


def _folded(
    poly: Poly, name: str, body: Expr, setting: Setting, table: Table
) -> tuple[Poly, Setting] | None:
    """The polynomial with a symbol T eliminated through an abbreviation E = ... + T or ... - T."""
    if body.op != "add":
        return None
    for place, term in enumerate(body.args):
        sign, inside = (
            (-1, term.args[1])
            if term.op == "scale" and term.args[0] == ex.number(-1)
            else (1, term)
        )
        others = body.args[:place] + body.args[place + 1 :]
        if inside.op != "symbol" or setting.kinds_of(str(inside.data)) - {"constant"}:
            continue
        if any(_mentions(other, str(inside.data)) for other in others):
            continue
        matrices = {**setting.matrices, name: (body.rows, body.cols)}
        wide = dataclasses.replace(setting, matrices=matrices, velocity={}, update={})
        whole, rest = ex.symbol(name, body.rows, body.cols), ex.add(*others)
        value = ex.subtract(whole, rest) if sign > 0 else ex.subtract(rest, whole)
        expander = Expander(wide, table)

        def entry(i: Index, j: Index, value: Expr = value, expander: Expander = expander) -> Poly:
            return expander.entry(value, i, j)

        motion: Motion = {str(inside.data): entry}
        return table.settle(Kinds(wide, table).impose(expander.substitute(poly, motion, -3))), wide
    return None


def _mentions(expr: Expr, name: str) -> bool:
    return (expr.op == "symbol" and expr.data == name) or any(
        _mentions(arg, name) for arg in expr.args
    )
