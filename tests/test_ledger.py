"""The ledger finds scripts, has all evidence whatever fails, and keeps whole files."""

import json

import pytest

from nonmixing import ledger
from nonmixing.errors import InputError


def test_scripts_in_natural_order(tmp_path):
    for name in ("F10", "F2", "M1", "F1", "_shared", "D3"):
        (tmp_path / f"{name}.py").write_text('"""A script."""')
    (tmp_path / "notes.md").write_text("no script")
    assert [path.stem for path in ledger.find(tmp_path)] == ["D3", "F1", "F2", "F10", "M1"]
    assert [path.stem for path in ledger.find(tmp_path, ["M1", "F10"])] == ["F10", "M1"]


def test_an_unknown_id_is_met_with_the_nearest(tmp_path):
    for name in ("F1", "F2", "M14"):
        (tmp_path / f"{name}.py").touch()
    with pytest.raises(InputError, match=r"'m14'.*nearest: M14.*nonmixing list"):
        ledger.find(tmp_path, ["m14"])
    with pytest.raises(InputError, match=r"'F3'.*F1.*nonmixing list"):
        ledger.find(tmp_path, ["F1", "F3"])


@pytest.mark.parametrize("place", ["absent", "empty"])
def test_a_folder_without_scripts(tmp_path, place):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=place):
        ledger.find(tmp_path / place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claim = 3", "int"),
        ("x = 3", "NoneType"),
        (
            "from nonmixing.claim import *\n"
            "claim = Claim(id='Y', title='', source='', simulation=(Experiment(print),))",
            "'Y'.*'X'",
        ),
    ],
)
def test_load_refuses_a_script_without_its_claim(tmp_path, text, message):
    (tmp_path / "X.py").write_text(text)
    with pytest.raises(InputError, match=message):
        ledger.load(tmp_path / "X.py")


def test_a_script_is_run_once(tmp_path):
    (tmp_path / "once.py").write_text("box = []")
    first = ledger.load_script(tmp_path / "once.py")
    first.box.append(1)
    assert ledger.load_script(tmp_path / "once.py").box == [1]


def test_scripts_of_one_name_in_two_folders_stay_apart(tmp_path):
    for folder in ("a", "b"):
        place = tmp_path / folder / "proofs"
        place.mkdir(parents=True)
        (place / "same.py").write_text(f"where = {folder!r}")
    assert ledger.load_script(tmp_path / "a/proofs/same.py").where == "a"
    assert ledger.load_script(tmp_path / "b/proofs/same.py").where == "b"


def test_one_failure_stops_nothing(proofs):
    result = ledger.run(ledger.find(proofs("E1", "E2", "P1", "P2", "P3", "S1", "S2", "S3")))
    words = {claim.id: [o.verdict.verdict for o in claim.outcomes] for claim in result.claims}
    assert words == {
        "E1": ["error"],
        "E2": ["error"],
        "P1": ["proved"],
        "P2": ["refuted"],
        "P3": ["refuted"],
        "S1": ["supported", "unsupported"],
        "S2": ["unsupported"],
        "S3": ["inconclusive"],
    }
    as_claimed = {claim.id for claim in result.claims if claim.as_claimed}
    assert as_claimed == {"P1", "P2", "S1"}
    errors = {claim.id: claim.outcomes[0].verdict for claim in result.claims[:2]}
    assert errors["E1"].scope == "ZeroDivisionError: division by zero (E1.py, line 6)"
    assert "broken" in errors["E1"].details["traceback"]
    assert errors["E2"].scope.startswith("SyntaxError")


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        (["P1", "P2", "S1"], 0),
        (["P1", "P3"], 1),
        (["S2"], 1),
        (["E1"], 1),
        (["E2"], 1),
        (["S3"], 3),
        (["S3", "P3"], 1),
    ],
)
def test_exit_codes(proofs, ids, code):
    assert ledger.run(ledger.find(proofs(*ids))).exit_code == code


def test_a_script_that_leaves_is_an_error(tmp_path):
    (tmp_path / "Q1.py").write_text("raise SystemExit('gone')")
    result = ledger.run(ledger.find(tmp_path))
    assert result.claims[0].outcomes[0].verdict.scope == "SystemExit: gone (Q1.py, line 1)"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('gone')", "SystemExit: gone"),
        ("raise MemoryError", "MemoryError: no message"),
        ("open('/absent')", "FileNotFoundError: "),
        ("raise ValueError('first\\nsecond')", "ValueError: first "),
        ("from nonmixing.errors import NoClosedForm; raise NoClosedForm('why')", "why"),
    ],
)
def test_evidence_that_raises_is_an_error_whatever_it_raises(tmp_path, code, said):
    (tmp_path / "Q2.py").write_text(f"""
from nonmixing.claim import Claim, Experiment

def fails(quick):
    {code}

claim = Claim(id="Q2", title="", source="", training=(Experiment(fails),))
""")
    result = ledger.run(ledger.find(tmp_path))
    (outcome,) = result.claims[0].of("training")
    assert outcome.verdict.verdict == "error"
    assert outcome.verdict.scope.startswith(said)
    assert "second" not in outcome.verdict.scope


def test_json_of_a_run(proofs, tmp_path):
    result = ledger.run(ledger.find(proofs("P3", "S1", "E1")), quick=True)
    path = tmp_path / "ledger.json"
    ledger.write_json(result, path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["quick"] is True
    assert saved["complete"] is True
    assert saved["as_claimed"] is False
    assert [claim["id"] for claim in saved["claims"]] == ["E1", "P3", "S1"]
    _, refuted, measured = saved["claims"]
    (proof,) = refuted["proof"]
    assert (proof["verdict"], proof["expected"], proof["as_expected"]) == (
        "refuted",
        "proved",
        False,
    )
    assert (
        proof["decision"]["counterexample"]["left"] != proof["decision"]["counterexample"]["right"]
    )
    (simulation,) = measured["simulation"]
    assert simulation["measured"] == 1.05
    assert simulation["predicted"] == 1.0
    assert simulation["tolerance"] == 0.2
    assert simulation["seed"] == 3
    assert simulation["nulls"] == {"frozen": 0.0}
    assert measured["training"][0]["measured"] == [1.0, 2.5]
    assert "[1.0, 2.5]" in path.read_text(encoding="utf-8")
    assert list(tmp_path.glob(".ledger*")) == []


def test_an_interrupted_run_keeps_what_it_has_finished(proofs, tmp_path):
    place = proofs("P1", "S2", "S3")
    (place / "S2.py").write_text("""
from nonmixing.claim import Claim, Experiment

def stop(quick):
    raise KeyboardInterrupt

claim = Claim(id="S2", title="stops", source="test", simulation=(Experiment(stop),))
""")
    path = tmp_path / "ledger.json"
    with pytest.raises(KeyboardInterrupt):
        ledger.run(ledger.find(place), keep=lambda part: ledger.write_json(part, path))
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["complete"] is False
    assert [claim["id"] for claim in saved["claims"]] == ["P1"]


def test_a_missing_extra_leaves_the_claim_open(tmp_path):
    """Nothing is wrong with the claim, and nothing is refuted: exit code 3, and a helpful line."""
    script = """
import nonmixing as nm
from nonmixing.claim import Claim, Experiment
from nonmixing.errors import MissingExtra


def training(quick):
    raise MissingExtra('train: needs torch; pip install "nonmixing[train]"')


claim = Claim(id="X1", title="t", source="s", training=(Experiment(training, name="net"),))
"""
    (tmp_path / "X1.py").write_text(script)
    result = ledger.run([tmp_path / "X1.py"])
    (outcome,) = result.claims[0].outcomes
    assert outcome.verdict.verdict == "inconclusive"
    assert outcome.verdict.scope.startswith("not run: train: needs torch")
    assert result.exit_code == 3


def test_a_file_that_cannot_be_written(proofs, tmp_path):
    result = ledger.run(ledger.find(proofs("P1")))
    with pytest.raises(InputError, match="cannot be written"):
        ledger.write_json(result, tmp_path / "absent" / "ledger.json")
    with pytest.raises(InputError, match="cannot be written"):
        ledger.write_json(result, tmp_path)
    assert list(tmp_path.parent.glob(f".{tmp_path.name}*")) == []


def test_progress_is_told_before_each_piece(proofs):
    told = []
    ledger.run(ledger.find(proofs("P1", "S1")), watch=lambda *what: told.append(what))
    assert told == [("P1 proof", 0, 3), ("S1 simulation", 1, 3), ("S1 training", 2, 3)]


def test_summary_does_not_run_the_script(tmp_path):
    script = tmp_path / "F1.py"
    script.write_text('"""F1. The flow equation.\n\nMore."""\nraise RuntimeError')
    assert ledger.summary(script) == "The flow equation"
    script.write_text("claim = (")
    assert "cannot be read" in ledger.summary(script)
