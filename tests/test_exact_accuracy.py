"""The closed forms on random problems of every family, by the benchmark that prints the table."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def accuracy() -> Any:
    """The benchmark as a module."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("accuracy", BENCHMARKS / "accuracy.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["accuracy"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHMARKS))
    return module


def held(accuracy: Any, problems: int, seed: int) -> None:
    results = list(accuracy.run(problems, seed))
    late = [x for x in results if max(x.error, x.limit_error or 0.0) > accuracy.REQUIRED]
    assert not late, late[:3]
    assert {x.family for x in results} == set(accuracy.FAMILIES)
    assert {x.reference for x in results} == {"digits", "semigroup"}


def test_forty_problems_are_solved_to_ten_digits(accuracy: Any) -> None:
    held(accuracy, 42, 1)


@pytest.mark.nightly
def test_a_thousand_problems_are_solved_to_ten_digits(accuracy: Any) -> None:
    held(accuracy, 1000, 0)


@pytest.mark.parametrize(
    ("family", "mistake"),
    [
        *product(["M4", "M5", "D9", "M8", "M8 with decay", "M9"], ["slow", "half"]),
        *product(["D9", "M8 with decay"], ["no decay"]),
    ],
)
def test_a_wrong_formula_is_noticed(
    accuracy: Any, monkeypatch: pytest.MonkeyPatch, family: str, mistake: str
) -> None:
    """A clock that is one part in 10⁸ slow, one of half the speed, and a forgotten decay."""
    right = accuracy.solve

    def wrong(problem: Any, start: Any, times: Any) -> Any:
        if mistake == "no decay":
            problem = accuracy.BilinearProblem((problem.svd.P, problem.svd.s, problem.svd.R))
            return right(problem, start, times)
        return right(problem, start, np.asarray(times) * (0.5 if mistake == "half" else 1 - 1e-8))

    monkeypatch.setattr(accuracy, "solve", wrong)
    errors = [
        x.error
        for index in range(40)
        if accuracy.digits(drawn := accuracy.drawn(family, (2, index)), drawn.time) < 200
        for x in [accuracy.measured(family, (2, index))]
    ]
    assert len(errors) >= 4
    assert max(errors) > 1e3 * accuracy.REQUIRED or (
        mistake == "slow" and max(errors) > accuracy.REQUIRED
    )
