"""Random claims, true by construction or spoilt by one change, against exact evaluation.

Every draw has a seed of its own, made of its group and number; degrees, kinds and operators are
drawn by quota, and the shares are checked at the end of each group.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from algebra import generate as g
from algebra.oracle import World, separates

from nonmixing.algebra import Decision, decide, load_claims

DEGREES = range(2, 9)
FEATURES = (
    *("symmetric", "skew", "diagonal", "orthogonal", "orthonormal", "invertible"),
    *("hadamard", "scale", "scalar", "dimension", "div", "pow", "add", "sub", "T"),
    *("tr", "norm2", "inner", "sum", "diag", "diagpart", "sym", "inv", "eye"),
)
GROUPS = ("plain", "plain", "D", "grad", "d", "after", "twice", "sizes")
"""What stands on top: nothing, a derivative or step, two derivatives; or integer dimensions."""

SIZES: tuple[dict[str, int], ...] = (
    *({"n": 2}, {"n": 1}, {"r": 1}, {"n": 3}, {"m": 1, "r": 1}, {"m": 3, "n": 2, "r": 1}),
    *({"m": 2, "n": 2, "r": 2}, {"n": 2, "r": 1}, {"m": 1, "n": 1, "r": 1}),
)


@dataclass(frozen=True)
class Drawn:
    """A claim file with one claim, and what went into it."""

    toml: str
    degree: int
    features: frozenset[str]
    spoilt: bool
    fixed: Mapping[str, int]


def draw(group: str, number: int) -> Drawn:
    rng = random.Random(f"{group} {number}")
    degree = DEGREES[number % len(DEGREES)]
    if group in ("twice", "sizes"):
        degree = min(degree, 5)
    wanted = FEATURES[number % len(FEATURES)]
    left = next(e for e in candidates(group, degree, rng) if wanted in g.features(e))
    right = g.rewrite(left, rng, rng.randint(2, 7))
    spoilt = number % 5 in (1, 3)
    if spoilt:
        right = g.spoil(right, rng)
    toml = g.claim_file(g.text(left), g.text(right))
    fixed: dict[str, int] = {}
    if group == "sizes" and not re.search(r"\b[mnr]\.T|/ [mnr]\b", toml):
        fixed = rng.choice(SIZES)
        for name, size in fixed.items():
            toml = toml.replace(f"'{name}'", str(size))
            toml = re.sub(rf"\b{name}\b(?! =)", str(size), toml)
    return Drawn(toml, g.degree(left), frozenset(g.features(left)), spoilt, fixed)


def candidates(group: str, degree: int, rng: random.Random):
    while True:
        source = g.Draw(rng)
        source.sums = rng.randint(0, 3)
        calculus = group if group in g.CALCULUS else None
        if group == "twice":
            calculus = rng.choice(g.CALCULUS)
        expr = source.any(degree, calculus)
        if group == "twice":
            expr = _again(expr, source, rng)
        if g.degree(expr) == degree and g.size(expr) <= 60:
            yield expr


def _again(expr: g.Node, source: g.Draw, rng: random.Random) -> g.Node:
    """A second derivative."""
    match rng.choice(["D", "grad", "d", "after"]):
        case "grad":
            other = source.leaf(*expr.shape)
            scalar = expr if expr.scalar else g.to_scalar("inner", expr, other)
            return g.grad(scalar, rng.choice(g.VARIABLES))
        case "D":
            variable = rng.choice(g.VARIABLES)
            return g.directional(expr, variable, source.leaf(*g.name(variable).shape))
        case op:
            return g.along(op, expr)


def some_sizes(fixed: Mapping[str, int], rng: random.Random) -> dict[str, int]:
    """Random sizes of the symbolic dimensions, with r <= m."""
    while True:
        sizes = {name: rng.randint(1, 3) for name in g.DIMS} | dict(fixed)
        if sizes["r"] <= sizes["m"]:
            return {name: size for name, size in sizes.items() if name not in fixed}


def agree(drawn: Drawn, rng: random.Random, draws: int) -> bool:
    """Whether the sides are equal at random matrices, by the oracle."""
    world = World(drawn.toml)
    done = 0
    while done < draws:
        sizes = some_sizes(drawn.fixed, rng)
        try:
            if not world.equal(sizes, world.draw(sizes, rng, 2)):
                return False
        except ZeroDivisionError:
            continue
        done += 1
    return True


def check(drawn: Drawn, decision: Decision, rng: random.Random) -> str | None:
    """What is wrong with a decision; None if nothing is."""
    if decision.verdict == "refuted":
        if not drawn.spoilt:
            return "a true claim was refuted"
        if not separates(drawn.toml, decision.counterexample):
            return "the counterexample does not separate the sides"
        return None
    if decision.verdict == "undecided":
        return f"undecided: {decision.reason}"
    if not drawn.spoilt:
        return None if agree(drawn, rng, 1) else "the rewriting rules of this test are wrong"
    return None if agree(drawn, rng, 3) else "a false claim was proved"


def run(group: str, numbers: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number in numbers:
        drawn = draw(group, number)
        (statement,) = load_claims(drawn.toml, "random")
        decision = decide(statement, timeout=20)
        wrong = check(drawn, decision, random.Random(number))
        says = World(drawn.toml).claim()["says"]
        assert wrong is None, f"{group} {number} {dict(drawn.fixed)}: {wrong}: {says}"
        counts[decision.verdict] += 1
        counts[f"degree {drawn.degree}"] += 1
        counts.update(drawn.features)
    return counts


@pytest.mark.parametrize("part", range(len(GROUPS)), ids=lambda part: f"{part}-{GROUPS[part]}")
def test_random_claims(part: int) -> None:
    draws = 28
    group = GROUPS[part]
    counts = run(group, range(1000 * part, 1000 * part + draws))
    # Shares: both verdicts, every degree, every kind and operator in its turn.
    assert counts["proved"] >= draws * 0.4
    assert counts["refuted"] >= draws * 0.15
    for degree in DEGREES if group not in ("twice", "sizes") else (2, 3, 4, 5):
        assert counts[f"degree {degree}"] >= draws // len(DEGREES)
    for feature in FEATURES:
        assert counts[feature] >= 1
    if group in g.CALCULUS:
        assert counts[group] == draws


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(len(GROUPS)), ids=lambda part: f"{part}-{GROUPS[part]}")
def test_many_random_claims(part: int) -> None:
    draws = 2500
    counts = run(GROUPS[part], range(10_000 * (part + 1), 10_000 * (part + 1) + draws))
    assert counts["refuted"] >= draws * 0.2
    for feature in FEATURES:
        assert counts[feature] >= draws * 0.04


def test_the_oracle_agrees_with_the_rewritings_and_sees_mistakes() -> None:
    """The test's own ground: rewritings are true, and most single changes are seen."""
    seen = total = 0
    for number in range(40):
        drawn = draw("plain", 90_000 + number)
        rng = random.Random(number)
        if drawn.spoilt:
            total += 1
            seen += not agree(drawn, rng, 2)
        else:
            assert agree(drawn, rng, 2)
    assert seen >= total * 0.6
