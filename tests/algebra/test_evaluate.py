"""Exact evaluation, the prover's second opinion, against the tests' own evaluator."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from algebra import generate as g
from algebra.declare import statement, toml
from algebra.oracle import World, array, draw_matrix
from algebra.test_random import candidates, some_sizes

from nonmixing.algebra import load_claims
from nonmixing.algebra.evaluate import Evaluator
from nonmixing.algebra.ring import PRIME, Ring, Undefined


def tuples(value: Any) -> Any:
    return tuple(tuple(row) for row in value)


def residues(value: Any) -> Any:
    """A rational matrix modulo the prime."""
    exact = [[Fraction(x) for x in row] for row in value]
    return tuple(
        tuple(x.numerator * pow(x.denominator, -1, PRIME) % PRIME for x in row) for row in exact
    )


@pytest.mark.parametrize("group", ["plain", "D", "grad", "d", "after", "twice"])
def test_random_expressions(group: str) -> None:
    rng = random.Random(f"evaluate {group}")
    differs = 0
    for number in range(14):
        expr = next(candidates(group, 2 + number % 4, rng))
        text = g.claim_file(g.text(expr), g.text(expr))
        (claim,) = load_claims(text, "test")
        world = World(text)
        sizes = some_sizes({}, rng)
        values = world.draw(sizes, rng, 2)
        expected = world.at(g.text(expr), sizes, values)
        evaluator = Evaluator(claim.setting, sizes, {k: tuples(v) for k, v in values.items()})
        assert (array(evaluator.at(claim.left)) == expected).all(), g.text(expr)
        modulo = Evaluator(
            claim.setting,
            sizes,
            {k: residues(v) for k, v in values.items()},
            PRIME,
        )
        assert residues(modulo.at(claim.left)) == residues(expected), g.text(expr)
        differs += bool((expected != 0).any())
    assert differs >= 4  # not a comparison of zeros with zeros


@pytest.mark.parametrize("n", [1, 2, 4])
def test_inverse(n: int) -> None:
    rng = random.Random(n)
    a = draw_matrix(n, n, {"invertible"}, rng)
    inverse = array(Ring().inverse(tuples(a)))
    assert (a @ inverse == np.eye(n, dtype=int)).all()
    assert residues(Ring(PRIME).inverse(residues(a))) == residues(inverse)


def test_singular_matrices_have_no_inverse() -> None:
    for singular in ([[0]], [[1, 2], [2, 4]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]):
        for ring in (Ring(), Ring(PRIME)):
            with pytest.raises(Undefined):
                ring.inverse(tuples(singular))


def test_division_by_zero_is_undefined() -> None:
    claim = statement("X / (a - b) == X")
    values = {"X": ((1,),), "a": ((2,),), "b": ((2,),)}
    with pytest.raises(Undefined):
        Evaluator(claim.setting, {"n": 1}, values).at(claim.left)


def test_fractions_modulo_the_prime() -> None:
    claim = statement("a / 3 + 0.25 == b")
    ((value,),) = Evaluator(claim.setting, {}, {"a": ((5,),)}, PRIME).at(claim.left)
    assert (value * 12 - 23) % PRIME == 0


def test_nested_derivatives_of_one_variable_do_not_mix() -> None:
    """The classical trap: the tangent of an inner derivative taken for that of an outer one."""
    says = "grad(a * grad(a * b, b), a) == 2 * a"
    claim = statement(says)
    value = Evaluator(claim.setting, {}, {"a": ((5,),), "b": ((7,),)}).at(claim.left)
    assert value == ((10,),)
    inner = statement("D(D(X @ X, X, X), X, Y) == 0")
    text = toml("D(D(X @ X, X, X), X, Y) == 0")
    rng = random.Random(0)
    for n in (1, 2, 3):
        values = World(text).draw({"n": n}, rng)
        expected = World(text).at("D(D(X @ X, X, X), X, Y)", {"n": n}, values)
        rows = {k: tuples(v) for k, v in values.items()}
        assert (array(Evaluator(inner.setting, {"n": n}, rows).at(inner.left)) == expected).all()
