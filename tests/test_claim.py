"""Claims and verdicts: a band decides, a null can spoil it, words belong to their evidence."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import FALSE, TRUE
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, MatrixSymbol, Q, Trace, Transpose, symbols

import nonmixing as nm
from nonmixing.algebra import Counterexample, load_claims
from nonmixing.claim import (
    Claim,
    Expected,
    Experiment,
    from_text,
)
from nonmixing.compare import step_size_band
from nonmixing.errors import InputError
from nonmixing.evidence import of_band, of_comparison
from nonmixing.verdict import (
    Verdict,
    counterexample_line,
    exit_code,
    judge,
    numbers_line,
    to_plain,
)


def band(measured: Any, **more: Any) -> Verdict:
    settings: dict[str, Any] = {
        "predicted": 1.0,
        "tolerance": 0.2,
        "because": "theory",
        "scope": "test",
    }
    return judge("simulation", measured=measured, **(settings | more))


@pytest.mark.parametrize(
    ("measured", "nulls", "word"),
    [
        (1.2, {}, "supported"),
        (0.8, {"frozen": 0.0}, "supported"),
        (1.21, {}, "unsupported"),
        (0.79, {}, "unsupported"),
        ([1.0, 1.1], {"frozen": [0.0, 0.0]}, "supported"),
        ([1.0, 1.1], {"frozen": [0.0, 0.9]}, "inconclusive"),
        ([1.0, 1.3], {"frozen": [0.0, 0.0]}, "unsupported"),
        ([1.0, 1.3], {"frozen": [0.9, 0.0]}, "unsupported"),
        (float("nan"), {}, "unsupported"),
        ([1.0, float("inf")], {}, "unsupported"),
        (1.0, {"frozen": float("nan")}, "supported"),
        (np.array([1.0, 1.1]), {"slowed": np.array([2.0, 3.0])}, "supported"),
        (np.float64(1.0), {"slowed": 1.0}, "inconclusive"),
    ],
)
def test_judge(measured, nulls, word):
    assert band(measured, nulls=nulls).verdict == word


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.data())
def test_one_entry_outside_is_enough(offsets, data):
    inside = [10.0 + offset for offset in offsets]
    settings = {"predicted": 10.0, "tolerance": 1.0}
    assert band(inside, **settings).verdict == "supported"
    moved = data.draw(st.integers(0, len(inside) - 1))
    inside[moved] = 10.0 + data.draw(st.sampled_from([-1, 1])) * data.draw(st.floats(1.001, 1e9))
    assert band(inside, **settings).verdict == "unsupported"


def test_a_band_of_its_own_for_each_entry():
    settings = {"predicted": [1.0, 5.0], "tolerance": [0.1, 2.0]}
    assert band([1.05, 6.5], **settings).verdict == "supported"
    assert band([1.2, 6.5], **settings).verdict == "unsupported"


@pytest.mark.parametrize(
    "more",
    [
        {"predicted": [1.0, 1.0, 1.0]},
        {"tolerance": float("nan")},
        {"tolerance": -0.1},
        {"predicted": float("inf")},
        {"nulls": {"frozen": [0.0]}},
    ],
)
def test_a_band_that_is_none_is_refused(more):
    with pytest.raises(InputError, match="expected"):
        band([1.0, 1.0], **more)


def test_the_worst_entry_is_shown():
    line = numbers_line(band([1.0, 1.15, 0.9]))
    assert line == "1.15 in 1 ± 0.2, worst of 3"
    assert "1.5 outside 1 ± 0.2" in numbers_line(band([1.0, 1.5, 1.1]))
    assert numbers_line(band(1.0 + 3e-7, tolerance=2e-6)) == "off by 3e-07 ≤ 2e-06"
    assert numbers_line(band(1.0 + 3e-6, tolerance=2e-6)) == "off by 3e-06 > 2e-06"
    assert numbers_line(band([0.5, -0.75], predicted=0)) == "0.75 > 0.2, worst of 2"
    assert "nan outside" in numbers_line(band([1.0, float("nan"), 1.1]))


@pytest.mark.parametrize(
    ("word", "evidence"),
    [("proved", "simulation"), ("supported", "proof"), ("proved", "training"), ("fine", "proof")],
)
def test_only_the_prover_says_proved(word, evidence):
    with pytest.raises(InputError, match=word):
        Verdict(verdict=word, evidence=evidence, scope="")
    with pytest.raises(InputError, match="evidence"):
        Verdict(verdict="proved", evidence="hearsay", scope="")  # pyright: ignore[reportArgumentType]


def test_a_verdict_is_true_only_where_the_claim_stands():
    assert band(1.0)
    assert not band(2.0)
    assert not band(1.0, nulls={"frozen": 1.0})


def test_prove():
    m, n, r = symbols("m n r")
    U, V = MatrixSymbol("U", m, r), MatrixSymbol("V", n, r)
    proved = nm.prove(Transpose(U * V.T), V * U.T)
    assert proved
    assert proved.verdict == "proved"
    assert proved.counterexample is None
    refuted = nm.prove(Trace(U * U.T), 2 * Trace(U.T * U))
    assert not refuted
    assert refuted.verdict == "refuted"
    assert refuted.counterexample is not None
    assert "left =" in repr(refuted)
    assert "left =" in refuted._repr_html_()
    plain = json.loads(json.dumps(refuted.to_json(), allow_nan=False))
    entries = np.array(plain["decision"]["counterexample"]["values"]["U"], dtype=float)
    assert np.sum(entries**2) != 2 * np.sum(entries**2)


def test_counterexample_line_is_the_designs():
    one, two = ((1,),), ((2,),)
    example = Counterexample(
        dims={"m": 1, "n": 1, "r": 1},
        values={"W": one, "V": one, "a": two, "T": ((0,),)},
        left=((-16,),),
        right=((-4,),),
    )
    line = counterexample_line(example)
    assert line == "W = [1]  V = [1]  a = [2]  T = [0]:  left = -16, right = -4"


def test_counterexample_line_of_rows_and_fractions():
    half = Fraction(1, 2)
    example = Counterexample(
        dims={"m": 2},
        values={"X": ((1, half), (0, -1)), "eta": half},
        left=((1, 0),),
        right=((0, 0),),
    )
    line = counterexample_line(example)
    assert line == "X = [1, 1/2; 0, -1]  eta = 1/2:  left = [1, 0], right = [0, 0]"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Fraction(3, 2), "3/2"),
        (Fraction(4, 2), 2),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan]]), [[1.0, "nan"]]),
        ({"a": (1, Fraction(1, 3))}, {"a": [1, "1/3"]}),
        (True, True),
        (None, None),
    ],
)
def test_to_plain(value, plain):
    assert to_plain(value) == plain
    json.dumps(to_plain(value), allow_nan=False)


def test_to_plain_refuses_what_json_cannot_hold():
    with pytest.raises(InputError, match="object"):
        to_plain({"a": object()})


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([("proved", "proved"), ("refuted", "refuted"), ("inconclusive", "inconclusive")], 0),
        ([("proved", "proved"), ("refuted", "proved")], 1),
        ([("proved", "refuted")], 1),
        ([("error", "proved")], 1),
        ([("undecided", "proved"), ("inconclusive", "supported")], 3),
        ([("undecided", "proved"), ("unsupported", "supported")], 1),
        ([], 0),
    ],
)
def test_exit_code(pairs, code):
    assert exit_code(pairs) == code


def test_from_text_takes_the_expectation_given_or_the_files():
    (given_,) = from_text(FALSE, {"doubled": "refuted"})
    assert given_.verdict == "refuted"
    (files,) = from_text(FALSE.replace('id = "doubled"', 'id = "doubled"\nexpect = "refuted"'))
    assert files.verdict == "refuted"
    (neither,) = from_text(FALSE)
    assert neither.verdict == "proved"
    with pytest.raises(InputError, match=r"'dubled'.*doubled"):
        from_text(FALSE, {"dubled": "refuted"})


def test_settle_names_the_lemma_in_what_it_proves():
    claim = Claim(
        id="X",
        title="two statements",
        source="test",
        statements=(*from_text(TRUE), *from_text(FALSE, {"doubled": "refuted"})),
        lemma="an induction",
    )
    proved, refuted = [claim.settle(task) for task in claim.tasks()]
    assert proved.as_expected
    assert "an induction" in proved.verdict.scope
    assert refuted.as_expected
    assert "an induction" not in refuted.verdict.scope


def test_settle_sees_a_statement_that_fails():
    claim = Claim(id="X", title="false", source="test", statements=from_text(FALSE))
    (outcome,) = [claim.settle(task) for task in claim.tasks()]
    assert outcome.verdict.verdict == "refuted"
    assert not outcome.as_expected


def test_settle_passes_quick_on_and_takes_the_time():
    seen = []

    def run(quick: bool) -> Verdict:
        seen.append(quick)
        return band(1.0)

    claim = Claim(id="X", title="t", source="test", simulation=(Experiment(run),))
    for quick in (True, False):
        (outcome,) = [claim.settle(task, quick=quick) for task in claim.tasks()]
        assert outcome.verdict.seconds > 0
    assert seen == [True, False]


@pytest.mark.parametrize("answer", [True, None, band(1.0)])
def test_settle_refuses_evidence_of_another_kind(answer):
    claim = Claim(id="X", title="t", source="test", training=(Experiment(lambda quick: answer),))
    with pytest.raises(InputError, match="training"):
        claim.settle(claim.tasks()[0])


def test_a_claim_needs_evidence():
    with pytest.raises(InputError, match="evidence"):
        Claim(id="X", title="t", source="test")
    with pytest.raises(InputError, match="lemma"):
        Claim(id="X", title="t", source="s", simulation=(Experiment(lambda q: band(1)),), lemma="l")


def test_an_expectation_is_in_the_evidences_own_words():
    (statement,) = load_claims(TRUE, "test")
    with pytest.raises(InputError, match="supported"):
        Expected(statement, "supported")
    with pytest.raises(InputError, match="proved"):
        Experiment(lambda quick: band(1.0), "proved")


def test_of_comparison_and_of_band():
    """The verdicts are the comparisons' own, with every number carried over."""
    times = np.linspace(0.0, 1.0, 5)
    U = np.linspace(0.1, 0.6, 5)[:, None, None]
    problem = nm.BilinearProblem(np.array([[1.0]]))

    def run(factor: float) -> nm.Trajectory:
        return nm.Trajectory.from_arrays(times, factor * U, U, problem=problem)

    compared = nm.compare(run(1.0), run(1.01), tolerance=0.01, because="a test")
    verdict = of_comparison("simulation", compared, "one mode", seed=4)
    assert verdict.verdict == compared.verdict == "supported"
    assert verdict.measured == pytest.approx((0.0036,))
    assert (verdict.predicted, verdict.tolerance, verdict.because) == (0.0, (0.01,), "a test")
    assert verdict.nulls["frozen"] == pytest.approx((0.35,))
    assert verdict.seed == 4
    failed = nm.compare(run(1.0), run(1.1), tolerance=0.01, because="a test")
    assert of_comparison("training", failed, "one mode").verdict == "unsupported"
    assert failed.reason in of_comparison("training", failed, "one mode").scope

    flow, modified = run(1.0), run(1.04)
    band = step_size_band(run(1.044), flow, modified, run(1.021), run(1.02))
    verdict = of_band("training", band, "one mode")
    assert verdict.verdict == band.verdict == "supported"
    assert verdict.measured == pytest.approx((1.1,))
    assert (verdict.predicted, verdict.tolerance) == (1.0, 0.2)
    assert to_plain(verdict.details["fall"]) == pytest.approx([4.0])
    assert json.dumps(verdict.to_json(), allow_nan=False)


def test_prove_under_hypotheses_names_them():
    n = symbols("n")
    S, X = MatrixSymbol("S", n, n), MatrixSymbol("X", n, n)
    assert nm.prove(S.T * X, S * X).verdict == "refuted"
    verdict = nm.prove(S.T * X, S * X, [Q.symmetric(S)])
    assert verdict.verdict == "proved"
    assert verdict.hypotheses == ("S is symmetric",)
    verdict = nm.prove(S * X * S, X, [Eq(S * X, X), Eq(X * S, X)])
    assert verdict.verdict == "proved"
    assert len(verdict.hypotheses) == 2
