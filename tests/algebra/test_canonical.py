"""Canonical labelling: one key for exactly the isomorphic components, with the right signs."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nonmixing.algebra.canonical import SKEW, SYMMETRIC, Factor, Head, canonical, connected

X = Head("X", (-1, -1), ("n", "n"))
Y = Head("Y", (-1, -1), ("n", "n"))
S = Head("S", (-1, -1), ("n", "n"), SYMMETRIC)
K = Head("K", (-1, -1), ("n", "n"), SKEW)
x = Head("x", (-1, 0), ("n",))
ONE_SLOT = (x, Head("y", (-1, 0), ("n",)))
TWO_SLOTS = (X, Y, S)
THREE_SLOTS = (Head("W", (-1, -1, -1), ("n", "n", "n")),)


def isomorphic(one: list[Factor], other: list[Factor]) -> bool:
    """Whether two products differ by the names of summed labels and the order of factors."""
    return nx.is_isomorphic(
        incidence(one), incidence(other), node_match=lambda a, b: a["colour"] == b["colour"]
    )


def incidence(factors: list[Factor]) -> nx.Graph:
    """A graph with a node for each factor, for each of its slots, and for each label."""
    graph = nx.Graph()
    for number, (head, slots) in enumerate(factors):
        graph.add_node(("factor", number), colour=("factor", head))
        for slot, label in enumerate(slots):
            kind = "any" if head.symmetry else slot
            graph.add_node(("slot", number, slot), colour=("slot", kind))
            graph.add_edge(("factor", number), ("slot", number, slot))
            graph.add_node(("label", label), colour=("free", label) if label < 0 else "summed")
            graph.add_edge(("slot", number, slot), ("label", label))
    return graph


@st.composite
def products(draw: st.DrawFn) -> list[Factor]:
    """A connected product over a few labels."""
    heads = draw(st.sampled_from([TWO_SLOTS, TWO_SLOTS + ONE_SLOT, TWO_SLOTS + THREE_SLOTS]))
    labels = [-2, -1, *range(draw(st.integers(1, 5)))]
    factors: list[Factor] = []
    for _ in range(draw(st.integers(1, 7))):
        head = draw(st.sampled_from(heads))
        slots = tuple(draw(st.sampled_from(labels)) for _ in head.dims)
        factors.append((head, slots))
    return connected(factors)[0]


def shuffled(factors: list[Factor], rng: random.Random) -> list[Factor]:
    """The same product with other names for its summed labels, in another order."""
    summed = sorted({label for _, slots in factors for label in slots if label >= 0})
    names = rng.sample(range(100), len(summed))
    new = dict(zip(summed, names, strict=True))
    moved = [(head, tuple(new.get(label, label) for label in slots)) for head, slots in factors]
    moved = [
        (head, slots[::-1] if head.symmetry == SYMMETRIC and rng.random() < 0.5 else slots)
        for head, slots in moved
    ]
    rng.shuffle(moved)
    return moved


@given(products(), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(factors: list[Factor], rng: random.Random) -> None:
    assert canonical(shuffled(factors, rng)) == canonical(factors)


@given(products())
def test_key_is_an_isomorphic_product(factors: list[Factor]) -> None:
    sign, key = canonical(factors)
    assert sign == 1
    assert isomorphic(list(key), factors)
    assert canonical(key) == (1, key)


@given(products(), products())
def test_same_key_exactly_for_isomorphic_products(one: list[Factor], other: list[Factor]) -> None:
    assert (canonical(one)[1] == canonical(other)[1]) == isomorphic(one, other)


def test_same_key_exactly_for_isomorphic_products_that_look_alike() -> None:
    """Products of one letter over few labels: pairs that agree in every count."""
    rng = random.Random(1)
    pairs = alike = 0
    drawn: list[list[Factor]] = []
    while len(drawn) < 45:
        ends = [0, 0, 1, 1, 2, 2, 3, 3, *rng.choice([[], [4, 4], [0, 1]])]
        rng.shuffle(ends)
        head = rng.choice([X, S])
        product = [(head, tuple(ends[i : i + 2])) for i in range(0, len(ends), 2)]
        if len(connected(product)) == 1:
            drawn.append(product)
    for one, other in itertools.combinations(drawn, 2):
        same = isomorphic(one, other)
        assert (canonical(one)[1] == canonical(other)[1]) == same
        pairs, alike = pairs + 1, alike + same
    assert 20 < alike < pairs - 20  # both answers are tested


# --- skew heads ---------------------------------------------------------------------------------


def value(factors: list[Factor], tensors: dict[str, np.ndarray], free: dict[int, int]) -> int:
    """The component as a number, by summing over all labels."""
    summed = sorted({label for _, slots in factors for label in slots if label >= 0})
    size = next(iter(tensors.values())).shape[0]
    total = 0
    for choice in itertools.product(range(size), repeat=len(summed)):
        at = {**free, **dict(zip(summed, choice, strict=True))}
        term = 1
        for head, slots in factors:
            term *= int(tensors[head.name][tuple(at[label] for label in slots)])
        total += term
    return total


@st.composite
def skew_products(draw: st.DrawFn) -> list[Factor]:
    labels = [-1, -2, *range(draw(st.integers(1, 4)))]
    factors: list[Factor] = []
    for _ in range(draw(st.integers(1, 5))):
        head = draw(st.sampled_from([K, K, S, x, Head("J", (-1, -1), ("n", "n"), SKEW)]))
        factors.append((head, tuple(draw(st.sampled_from(labels)) for _ in head.dims)))
    return connected(factors)[0]


def random_tensors(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    a, b, c = rng.integers(-9, 10, (3, n, n))
    return {"K": a - a.T, "J": b - b.T, "S": c + c.T, "x": rng.integers(-9, 10, n)}


@given(skew_products(), st.integers(0, 10**6))
def test_signs_agree_with_the_numbers(factors: list[Factor], seed: int) -> None:
    tensors = random_tensors(np.random.default_rng(seed), 4)
    free = {-1: 0, -2: 1}
    sign, key = canonical(factors)
    assert value(factors, tensors, free) == (sign * value(list(key), tensors, free) if sign else 0)


def relabellings(factors: list[Factor]) -> dict[tuple[Factor, ...], set[int]]:
    """Every way to write a product with labels 0, 1, ...: the sorted code, and its signs."""
    summed = sorted({label for _, slots in factors for label in slots if label >= 0})
    found: dict[tuple[Factor, ...], set[int]] = {}
    for names in itertools.permutations(range(len(summed))):
        new = dict(zip(summed, names, strict=True))
        sign, code = 1, list[Factor]()
        for head, slots in factors:
            named = tuple(new.get(label, label) for label in slots)
            if head.symmetry and named[0] > named[1]:
                named, sign = named[::-1], sign * head.symmetry
            if head.symmetry == SKEW and named[0] == named[1]:
                sign = 0
            code.append((head, named))
        found.setdefault(tuple(sorted(code)), set()).add(sign)
    return found


@given(skew_products())
def test_zero_exactly_where_a_relabelling_reverses_the_sign(factors: list[Factor]) -> None:
    codes = relabellings(factors)
    zero = any(signs & {0} or signs == {1, -1} for signs in codes.values())
    assert (canonical(factors)[0] == 0) == zero


@given(skew_products(), skew_products())
def test_skew_products_share_a_key_exactly_if_they_share_a_code(
    one: list[Factor], other: list[Factor]
) -> None:
    (sign, key), (other_sign, other_key) = canonical(one), canonical(other)
    if sign and other_sign:
        shared = set(relabellings(one)) & set(relabellings(other))
        assert (key == other_key) == bool(shared)


@pytest.mark.parametrize(
    ("factors", "zero"),
    [
        ([(K, (0, 0))], True),  # tr K
        ([(x, (0,)), (K, (0, 1)), (x, (1,))], True),  # x^T K x
        ([(K, (0, 1)), (K, (1, 2)), (K, (2, 0))], True),  # tr K^3
        ([(K, (0, 1)), (K, (1, 0))], False),  # tr K^2
        ([(K, (0, 1)), (S, (1, 0))], True),  # tr K S
        ([(K, (0, 1)), (X, (1, 0))], False),  # tr K X
        ([(K, (0, 1)), (K, (0, 1)), (K, (0, 1))], True),  # sum K * K * K
        ([(K, (-1, 0)), (K, (0, -1))], False),  # (K^2)[r, r]
        ([(K, (0, 1)), (K, (0, 2)), (K, (0, 3))], False),
        ([(K, (0, 1)), (K, (0, 2)), (K, (1, 2))], True),  # swap 1 and 2
    ],
)
def test_known_zeros(factors: list[Factor], zero: bool) -> None:
    assert (canonical(factors)[0] == 0) == zero


# --- routes and speed ----------------------------------------------------------------------------


def is_chain(factors: list[Factor]) -> bool:
    counts: dict[int, int] = {}
    for _, slots in factors:
        for label in slots:
            counts[label] = counts.get(label, 0) + (label >= 0)
    return all(len(slots) <= 2 for _, slots in factors) and max(counts.values()) <= 2


@given(products(), products())
def test_the_two_routes_never_share_a_key(one: list[Factor], other: list[Factor]) -> None:
    assert is_chain(list(canonical(one)[1])) == is_chain(one)
    if is_chain(one) != is_chain(other):
        assert canonical(one)[1] != canonical(other)[1]


def twins(k: int) -> list[Factor]:
    return [(X, (0, i)) for i in range(1, k + 1)]


def cycle(k: int, head: Head = X) -> list[Factor]:
    return [(head, (i, (i + 1) % k)) for i in range(k)]


def bipartite(k: int) -> list[Factor]:
    return [(X, (i, k + j)) for i in range(k) for j in range(k)]


def complete(k: int) -> list[Factor]:
    return [(S, (i, j)) for i in range(k) for j in range(i)]


def cube(d: int) -> list[Factor]:
    return [(S, (i, i ^ (1 << b))) for i in range(2**d) for b in range(d) if i < i ^ (1 << b)]


def petersen() -> list[Factor]:
    return [(S, edge) for edge in nx.petersen_graph().edges]


def rook(k: int) -> list[Factor]:
    """A strongly regular graph, on which colour refinement alone sees nothing."""
    cells = list(itertools.product(range(k), repeat=2))
    return [
        (S, (i, j))
        for (i, a), (j, b) in itertools.combinations(enumerate(cells), 2)
        if (a[0] == b[0]) != (a[1] == b[1])
    ]


SYMMETRICAL = {
    "20 twins": twins(20),
    "cycle of 30": [*cycle(30, S), (x, (0,)), (x, (0,))],
    "plain cycle of 60": cycle(60, S),
    "bipartite 5 x 5": bipartite(5),
    "complete graph on 8": complete(8),
    "cube": cube(3),
    "four-dimensional cube": cube(4),
    "Petersen graph": petersen(),
    "rook's graph 4 x 4": rook(4),
}


@pytest.mark.parametrize("name", SYMMETRICAL)
def test_symmetrical_products_are_fast_and_right(name: str) -> None:
    factors = SYMMETRICAL[name]
    rng = random.Random(0)
    start = time.perf_counter()
    keys = {canonical(shuffled(factors, rng)) for _ in range(3)}
    assert len(keys) == 1
    assert time.perf_counter() - start < 10  # the orders of the labels: 20! to 60!
    _, key = keys.pop()
    assert degrees(list(key)) == degrees(factors)
    if not name.startswith("rook"):  # networkx takes seconds for that one
        assert isomorphic(list(key), factors)


def degrees(factors: list[Factor]) -> list[int]:
    """How often each label stands in the product, sorted."""
    return sorted(Counter(label for _, slots in factors for label in slots).values())


def test_two_strongly_regular_graphs_of_the_same_parameters_differ() -> None:
    """The rook's graph 4 x 4 and the Shrikhande graph: refinement cannot tell them apart."""
    steps = [(0, 1), (1, 0), (1, 1)]
    cells = list(itertools.product(range(4), repeat=2))
    number = {cell: i for i, cell in enumerate(cells)}
    shrikhande: list[Factor] = [
        (S, (number[a], number[(a[0] + d) % 4, (a[1] + e) % 4])) for a in cells for d, e in steps
    ]
    assert canonical(shrikhande)[1] != canonical(rook(4))[1]


def test_skew_graph_with_a_reversing_symmetry_is_zero_however_it_is_named() -> None:
    rng = random.Random(3)
    for k, zero in ((3, True), (4, False), (5, True), (6, False)):
        ring: list[Factor] = [(K, (i, (i + 1) % k)) for i in range(k)]
        tagged = [*ring, *((x, (i,)) for i in range(k))]  # tr of (diag(x) K)^k: the general route
        for _ in range(5):
            assert (canonical(shuffled(tagged, rng))[0] == 0) == zero


def test_connected_splits_by_summed_labels_only() -> None:
    parts = connected([(X, (-1, 0)), (Y, (1, -1)), (S, (0, 2)), (x, (1,))])
    assert sorted(len(part) for part in parts) == [2, 2]
