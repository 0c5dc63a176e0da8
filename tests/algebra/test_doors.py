"""Both doors, text and SymPy, on every case: the same verdicts, at the same sizes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from algebra.test_cases import OWN, SHARED
from sympy import Q

from nonmixing.algebra import Decision, Statement, decide, load_claims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.setting import KINDS
from nonmixing.algebra.sympy_door import equation, write
from nonmixing.errors import InputError
from nonmixing.flow import resolved

CLAIMS = sorted((Path(__file__).parent / "claims").glob("*.toml"))
PREDICATES = {
    "symmetric": Q.symmetric,
    "diagonal": Q.diagonal,
    "orthogonal": Q.orthogonal,
    "invertible": Q.invertible,
}
"""Kinds with a predicate in SymPy; the others are set by hand on the statement that was read."""

WITHOUT_COUNTERPART = {
    "face has no counterpart in SymPy": 5,
    "vec has no counterpart in SymPy": 3,
}
"""Why claims cannot be written for SymPy, and how many of the tests' own these are."""

TIMEOUT = 20


def claims(paths: list[Path]) -> list[tuple[str, Statement]]:
    """The claims of files; those files that are refused by the text door are left out."""
    found: list[tuple[str, Statement]] = []
    for path in paths:
        try:
            statements = load_claims(path.read_text("utf-8"), path.name)
        except InputError:
            continue
        found += [(f"{path.stem}: {statement.id}", statement) for statement in statements]
    return found


HERE = claims([*OWN, *CLAIMS])
BESIDE = claims(sorted(SHARED.glob("*.toml")))


def through_sympy(statement: Statement) -> Statement:
    """The statement, written as SymPy objects and read back.

    Raises:
        InputError: something in it has no counterpart in SymPy.
    """
    setting = statement.setting

    def sides(left: ex.Expr, right: ex.Expr) -> tuple[Any, Any]:
        """Both as SymPy objects, derivatives and means written out."""
        return tuple(
            write(
                ex.zeros(*other.shape)
                if ex.is_zero_literal(side) and not other.is_scalar
                else resolved(side, setting)
            )
            for side, other in ((left, right), (right, left))
        )

    left, right = sides(statement.left, statement.right)
    assuming = [sp.Eq(*sides(e.left, e.right), evaluate=False) for e in statement.assume]
    objects = [left, right, *(side for e in assuming for side in e.args)]
    symbols = {s.name: s for item in objects for s in item.atoms(sp.MatrixSymbol)}
    kinds = {name: kinds for name, kinds in setting.kinds.items() if name in symbols}
    predicates = [
        PREDICATES[kind](symbols[name])
        for name, many in kinds.items()
        for kind in sorted(many & PREDICATES.keys())
    ]
    read = equation(left, right, [*assuming, *predicates], statement.id)
    by_hand = {name: read.setting.kinds_of(name) | many for name, many in kinds.items()}
    whole = dataclasses.replace(read.setting, kinds={**read.setting.kinds, **by_hand})
    return dataclasses.replace(read, setting=whole)


@cache
def written(place: int, beside: bool = False) -> Statement | str:
    """A claim through the SymPy door, or why it does not fit."""
    _, statement = (BESIDE if beside else HERE)[place]
    try:
        return through_sympy(statement)
    except InputError as error:
        return str(error)


def same(statement: Statement, other: Statement) -> None:
    """Both are decided alike, and refuted at the same sizes.

    SymPy multiplies ones(1, a) @ ones(a, 1) out to a, which is then no dimension but a scalar.
    """
    by_text, by_sympy = decide(statement, timeout=TIMEOUT), decide(other, timeout=TIMEOUT)
    assert by_text.verdict == by_sympy.verdict, (by_text.reason, by_sympy.reason)
    left_out = {*sizes(by_text)} - {*sizes(by_sympy)}
    assert left_out <= other.setting.scalars
    kept = {dim: size for dim, size in sizes(by_text).items() if dim not in left_out}
    assert kept == sizes(by_sympy)


def sizes(decision: Decision) -> dict[str, int]:
    """The dimensions of the counterexample; none if there is no counterexample."""
    found = decision.counterexample
    return {} if found is None else dict(found.dims)


@pytest.mark.parametrize("place", range(len(HERE)), ids=[name for name, _ in HERE])
def test_both_doors_agree_on_the_cases_here(place: int) -> None:
    other = written(place)
    if isinstance(other, str):
        assert other in WITHOUT_COUNTERPART
        return
    same(HERE[place][1], other)


def test_what_cannot_be_written_for_sympy_is_known() -> None:
    """The reasons, and how many claims each keeps out; everything else goes through both doors."""
    reasons = Counter(r for r in map(written, range(len(HERE))) if isinstance(r, str))
    assert reasons == WITHOUT_COUNTERPART
    assert len(HERE) - reasons.total() >= 100


def test_kinds_without_a_predicate_are_known() -> None:
    assert {*KINDS} - PREDICATES.keys() == {"skew", "orthonormal", "constant"}


@pytest.mark.skipif(not SHARED.exists(), reason="no further cases beside the repository")
def test_both_doors_agree_on_the_cases_beside_the_repository() -> None:
    assert len(BESIDE) >= 30
    for place, (name, statement) in enumerate(BESIDE):
        other = written(place, beside=True)
        assert not isinstance(other, str), f"{name}: {other}"
        same(statement, other)
