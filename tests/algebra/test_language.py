"""The whole language: known verdicts, rechecked by Python's own `eval` on NumPy."""

from __future__ import annotations

import dataclasses
import itertools
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from nonmixing.algebra import decide, load_claims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.certificate import check_certificate
from nonmixing.algebra.decide import _Clock, _Work
from nonmixing.algebra.expand import Expander
from nonmixing.algebra.mutants import mutants
from nonmixing.algebra.setting import names_of
from nonmixing.errors import Disagreement, InputError, ShapeError

FOLDER = Path(__file__).parent / "claims"
STATEMENTS = [
    s
    for path in sorted(FOLDER.glob("*.toml"))
    for s in load_claims(path.read_text("utf-8"), path.name)
]
BY_ID = {s.id: s for s in STATEMENTS}


def matrix(rows):
    return np.array([[Fraction(x) for x in row] for row in rows], dtype=object)


def inverse(a):
    """Gauss-Jordan over fractions."""
    n = len(a)
    work = np.concatenate([a.copy(), matrix(np.eye(n, dtype=int).tolist())], axis=1)
    for k in range(n):
        pivot = next(i for i in range(k, n) if work[i, k] != 0)
        work[[k, pivot]] = work[[pivot, k]]
        work[k] = work[k] / work[k, k]
        for i in range(n):
            if i != k:
                work[i] = work[i] - work[i, k] * work[k]
    return work[:, n:]


def face(a, b):
    return np.array([np.kron(x, y) for x, y in zip(a, b, strict=True)], dtype=object)


def contract(t, *vectors):
    if len(vectors) == 2:
        return t @ np.kron(*vectors)
    y = vectors[0]
    return t.reshape(len(t), -1, len(y)) @ y[:, 0]


def blocks(*parts):
    total = np.full(
        (sum(len(p) for p in parts), sum(p.shape[1] for p in parts)), Fraction(0), dtype=object
    )
    i = j = 0
    for p in parts:
        total[i : i + len(p), j : j + p.shape[1]] = p
        i, j = i + len(p), j + p.shape[1]
    return total


def whole(value):
    return value if isinstance(value, np.ndarray) else np.array([[value]], dtype=object)


NAMES = {
    "tr": lambda a: np.trace(whole(a)),
    "norm2": lambda a: (whole(a) * whole(a)).sum(),
    "sum": lambda a: whole(a).sum(),
    "diag": lambda a: np.diag(a[:, 0]),
    "diagpart": lambda a: np.diag(np.diag(a)),
    "inv": inverse,
    "vec": lambda a: a.reshape(-1, 1, order="F"),
    "kron": np.kron,
    "face_splitting": face,
    "tensor": lambda p, w, v: p @ face(w, v),
    "contract": contract,
    "hstack": lambda *a: np.concatenate(a, axis=1),
    "vstack": lambda *a: np.concatenate(a, axis=0),
    "blkdiag": blocks,
    "eye": lambda n: matrix(np.eye(n, dtype=int).tolist()),
    "ones": lambda m, n: matrix(np.ones((m, n), dtype=int).tolist()),
    "zeros": lambda m, n: matrix(np.zeros((m, n), dtype=int).tolist()),
}
CALCULUS = ("grad(", "D(", "expect(", "d(", "after(")


def scope(dims, values):
    found = {**NAMES, **dims}
    for name, value in values.items():
        if isinstance(value, str):
            found[name] = lambda a, text=value: np.vectorize(
                lambda z: eval(text, {"z": z}), otypes=[object]
            )(a)
        else:
            found[name] = matrix(value) if isinstance(value, tuple | list) else Fraction(value)
    return found


def evaluate(text, names):
    return whole(eval(text, {"__builtins__": {}}, names))


def pieces(statement):
    return [statement.left_text, statement.right_text]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_the_verdict_is_the_known_one(statement):
    decision = decide(statement, timeout=30)
    assert decision.verdict == statement.expect, decision.difference


@pytest.mark.parametrize(
    "statement",
    [s for s in STATEMENTS if s.expect == "refuted" and not any(c in s.says for c in CALCULUS)],
    ids=lambda s: s.id,
)
def test_each_counterexample_separates_in_numpy(statement):
    found = decide(statement).counterexample
    assert found is not None
    names = scope(found.dims, found.values)
    left, right = (evaluate(text, names) for text in pieces(statement))
    assert (left != right).any()
    np.testing.assert_array_equal(left, matrix(found.left))


@pytest.mark.parametrize(
    "statement",
    [
        s
        for s in STATEMENTS
        if s.expect == "proved"
        and not s.assume
        and not s.setting.kinds.keys() & set(names_of(s).matrices)
        and not s.setting.abbreviations.keys() & set(s.says.split())
        and not names_of(s).functions
        and not any(c in s.says for c in CALCULUS)
    ],
    ids=lambda s: s.id,
)
def test_each_truth_holds_in_numpy(statement):
    rng = np.random.default_rng(7)
    names = names_of(statement)
    dims = dict(zip(names.dims, itertools.cycle((2, 3, 1)), strict=False))
    values = {}
    for name in names.matrices:
        rows, cols = (
            d if isinstance(d, int) else dims[d] for d in statement.setting.matrices[name]
        )
        values[name] = rng.integers(-5, 6, size=(rows, cols)).tolist()
    for name in names.scalars:
        values[name] = int(rng.integers(5, 50))
    found = scope(dims, values)
    left, right = (evaluate(text, found) for text in pieces(statement))
    assert (left == right).all()


def test_gaussian_means_by_quadrature():
    """E (xᵀ Q x)² / 2 by Gauss-Hermite quadrature, against the form that the prover proves."""
    rng = np.random.default_rng(3)
    Q = rng.normal(size=(3, 3))
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / np.sqrt(2 * np.pi)
    mean = 0.0
    for pick in itertools.product(range(5), repeat=3):
        x = nodes[list(pick)]
        mean += np.prod(weights[list(pick)]) * (x @ Q @ x) ** 2 / 2
    assert BY_ID["wick"].right_text == "(tr(Q) ** 2 + tr(Q @ Q) + tr(Q @ Q.T)) / 2"
    form = (np.trace(Q) ** 2 + np.trace(Q @ Q) + np.trace(Q @ Q.T)) / 2
    assert mean == pytest.approx(form, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["inverse", "completion", "completion2", "trig", "signs", "proj", "unit"]
)
def test_certificates_name_what_they_use(name):
    decision = decide(BY_ID[name])
    assert decision.certificate[-1].startswith("left - right ==")
    for line in decision.certificate[:-1]:
        symbol = line.split(" := ")[0]
        assert symbol in decision.certificate[-1]


def reduced(statement):
    work = _Work(statement, _Clock(0.0, None))
    cells = work._reduced(Expander(statement.setting, work.table))
    return work, [cell for cell, _ in cells]


@pytest.mark.parametrize(
    "name", ["inverse", "woodbury-ish", "completion2", "unit", "aligned", "orth"]
)
def test_a_tampered_certificate_is_turned_down(name):
    statement = BY_ID[name]
    work, cells = reduced(statement)
    dims = dict(zip(work.names.dims, (3, 2, 4, 3, 2), strict=False))

    def check(which):
        rng = random.Random(1)
        return check_certificate(
            statement, work.hypotheses, work.names, dims, work.table, which, rng
        )

    assert check(cells)
    assert cells[0].uses
    first, *rest = cells[0].uses
    doubled = dataclasses.replace(first, cofactor=work.table.scale(first.cofactor, 2))
    assert not check([dataclasses.replace(cells[0], uses=(doubled, *rest))])
    assert not check([dataclasses.replace(cells[0], uses=tuple(rest))])


def test_equations_hold_at_the_instant_only():
    """B == 0 at one time says nothing about d(B)."""
    text = """
    [matrices]
    B = ["n", "n"]
    C = ["n", "n"]
    [flow.velocity]
    B = "C"
    [[claim]]
    says = "d(B) == 0"
    assume = ["B == 0"]
    """
    (statement,) = load_claims(text, "instant")
    assert decide(statement).verdict == "refuted"


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("kron(A, B) @ A == A", ["n*q", "m"]),
        ("hstack(A, B) == A", ["hstack", "rows"]),
        ("vstack(A, B) == A", ["vstack", "columns"]),
        ("face_splitting(A, B) == A", ["face_splitting", "rows"]),
        ("contract(A, x) == A", ["contract"]),
        ("expect(A, A) == A", ["expect", "column"]),
        ("expect(phi(x), x) == x", ["phi", "mean"]),
        ("A == vec(A)", ["m x n", "n*m x 1"]),
    ],
)
def test_what_does_not_fit_is_named(says, words):
    text = f"""
    [matrices]
    A = ["m", "n"]
    B = ["p", "q"]
    x = ["n", 1]
    [functions]
    phi = {{}}
    [[claim]]
    says = "{says}"
    """
    with pytest.raises((InputError, ShapeError)) as caught:
        decide(load_claims(text, "file")[0])
    for word in words:
        assert word in str(caught.value)


def test_dimensions_that_agree_as_numbers_only_are_no_shape_error():
    """kron(A, B) and kron(B, A) have one shape and differ, and may be added."""
    text = """
    [matrices]
    A = ["m", "m"]
    B = ["n", "n"]
    [[claim]]
    id = "differ"
    says = "kron(A, B) == kron(B, A)"
    [[claim]]
    id = "added"
    says = "kron(A, B) + kron(B, A) == 0"
    """
    for statement in load_claims(text, "file"):
        decision = decide(statement)
        assert decision.verdict == "refuted"
        assert decision.counterexample is not None
        assert sum(decision.counterexample.dims.values()) <= 4


def test_the_second_opinion_is_asked_where_hypotheses_are_not_needed(monkeypatch):
    """A proof that does not use its assumption is evaluated all the same."""
    text = """
    [matrices]
    A = ["n", "n"]
    B = ["n", "n"]
    [[claim]]
    says = "tr(A @ B) == tr(B @ A)"
    assume = ["A == B"]
    """
    (statement,) = load_claims(text, "file")
    assert decide(statement).verdict == "proved"
    asked = []
    # The package offers the function `decide` under its module's name.
    module = sys.modules["nonmixing.algebra.decide"]
    monkeypatch.setattr(module, "check_certificate", lambda *args: bool(asked.append(args)))
    with pytest.raises(Disagreement):
        decide(statement)
    assert asked


def test_mutants_differ_from_their_statement_and_are_decided():
    statement = BY_ID["mixed product"]
    made = list(mutants(statement))
    assert len(made) > 5
    assert len({(m.statement.left, m.statement.right) for m in made}) == len(made)
    assert all(decide(m.statement).verdict != "undecided" for m in made)


def test_rebuilding_an_expression_changes_nothing():
    for statement in STATEMENTS:
        for side in (statement.left, statement.right):
            assert ex.rebuilt(side, side.args) == side
