"""Every formula of the ledger's first claims is broken in turn, and the ledger must notice.

In the fast run only proofs; in the nightly run simulations and trainings too, whose formulas are
broken where the script types them a second time.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nonmixing import ledger

PROOFS = ledger.folder("proofs")
FIRST = ("F1", "F2", "F8", "F9", "M1", "M2", "M4", "M8")
SAYS = re.compile(r'says = "(?P<left>[^"]+?) == (?P<right>[^"]+)"')

# Where the number is made: (claim, what stands there, what is put in its place, which evidence).
NUMBERS = (
    ("F1", "return -E @ V @ V.T - U @ U.T @ E", "return -E @ V @ V.T + U @ U.T @ E", "simulation"),
    ("F1", "return -E @ V @ V.T - U @ U.T @ E", "return -E @ V @ V.T", "training"),
    ("F2", "gates = a**2 if corrected", "gates = a if corrected", "training"),
    ("F8", "np.sum((E.T @ state.U) ** 2))", "np.sum((E @ state.V) ** 2))", "simulation"),
    ("F8", "np.sum((E.T @ state.U) ** 2))", "np.sum((E @ state.V) ** 2))", "training"),
    (
        "F9",
        "start, end = START.imbalance, run.factors(-1).imbalance",
        "start, end = START.U.T @ START.U, run.factors(-1).U.T @ run.factors(-1).U",
        "simulation",
    ),
    (
        "F9",
        "lambda state: state.imbalance, degree=2",
        "lambda state: state.U.T @ state.U, degree=2",
        "training",
    ),
    (
        "M1",
        "return nm.aligned(problem(), a, b, width=4, seed=SEED)",
        "return nm.gaussian(problem(), scale=0.2, width=4, seed=SEED)",
        "simulation",
    ),
    (
        "M1",
        "return nm.aligned(problem(), a, b, width=4, seed=SEED)",
        "return nm.gaussian(problem(), scale=0.2, width=4, seed=SEED)",
        "training",
    ),
    (
        "M2",
        "start = nm.balanced(problem, scale=0.1, width=3, seed=SEED)",
        "start = nm.aligned(problem, 0.1)",
        "simulation",
    ),
    (
        "M4",
        "exact = nm.solve(posed, start, times)",
        "exact = nm.solve(posed, nm.aligned(posed, 1.1 * a, b, width=4, seed=SEED), times)",
        "simulation",
    ),
    (
        "M4",
        "exact = nm.solve(posed, start, coarse.times)",
        "exact = nm.solve(posed, nm.aligned(posed, 0.2, width=4), coarse.times)",
        "training",
    ),
    (
        "M8",
        "exact = nm.solve(problem(), start(0.3), times)",
        "exact = nm.solve(problem(), start(0.31), times)",
        "simulation",
    ),
    (
        "M8",
        "nm.solve(problem(), begin, coarse.times)",
        "nm.solve(problem(), start(0.4), coarse.times)",
        "training",
    ),
)


def formulas():
    for name in FIRST:
        text = (PROOFS / f"{name}.py").read_text("utf-8")
        claim = ledger.load(PROOFS / f"{name}.py")
        proved = {item.statement.says for item in claim.statements if item.verdict == "proved"}
        for number, found in enumerate(SAYS.finditer(text)):
            says = f"{found['left']} == {found['right']}"
            if says in proved:
                yield pytest.param(name, found[0], broken(found), id=f"{name}-{number}")


def broken(found: re.Match[str]) -> str:
    """The sign of the right side flipped; where it is 0, what is conserved changed in part."""
    if found["right"] != "0":
        return f'says = "{found["left"]} == -({found["right"]})"'
    return (
        found[0].replace(" - ", " - 2 * ", 1)
        if " - " in found[0]
        else found[0].replace("d(B)", "d(U.T @ U)")
    )


def run_broken(folder: Path, name: str, old: str, new: str):
    text = (PROOFS / f"{name}.py").read_text("utf-8")
    assert old in text, "the formula is not in the script any more"
    assert old != new
    for path in PROOFS.glob("*.py"):
        shutil.copy(path, folder / path.name)
    (folder / f"{name}.py").write_text(text.replace(old, new), encoding="utf-8")
    return ledger.load(folder / f"{name}.py")


@pytest.mark.parametrize(("name", "old", "new"), tuple(formulas()))
def test_a_broken_statement_is_refuted(tmp_path, name, old, new):
    claim = run_broken(tmp_path, name, old, new)
    outcomes = [
        claim.settle(task, quick=True) for task in claim.tasks() if task.evidence == "proof"
    ]
    wrong = [item for item in outcomes if not item.as_expected]
    assert wrong, "nobody noticed"
    for item in wrong:
        assert item.verdict.verdict == "refuted"
        assert item.verdict.counterexample is not None


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "old", "new", "evidence"), NUMBERS)
def test_a_broken_number_is_out_of_band(tmp_path, name, old, new, evidence):
    claim = run_broken(tmp_path, name, old, new)
    outcomes = [
        claim.settle(task, quick=True) for task in claim.tasks() if task.evidence == evidence
    ]
    wrong = [item for item in outcomes if not item.as_expected]
    assert wrong, "nobody noticed"


def test_the_originals_are_as_claimed():
    for name in FIRST:
        claim = ledger.load(PROOFS / f"{name}.py")
        outcomes = [claim.settle(task) for task in claim.tasks() if task.evidence == "proof"]
        assert all(item.as_expected for item in outcomes)
