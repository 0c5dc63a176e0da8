"""The report: readable lines, every number from the results, and what differs explained."""

import io
import json

import pytest

from nonmixing import ledger, report
from nonmixing.algebra import decide, load_claims
from nonmixing.verdict import exit_code

PAPER = """
[matrices]
W = ["m", "r"]
V = ["n", "r"]
a = ["r", 1]
T = ["m", "n"]

[define]
E = "W @ diag(a) @ V.T - T"

[flow]
loss = "norm2(E) / 2"
variables = ["W", "V"]

[[claim]]
id = "balance"
says = "d(diagpart(W.T @ W - V.T @ V)) == 0"

[[claim]]
id = "gated"
says = "d(W @ diag(a) @ V.T) == -E @ V @ V.T - W @ W.T @ E"
"""


def printed(result: ledger.LedgerResult) -> str:
    file = io.StringIO()
    report.print_result(result, file=file)
    return file.getvalue()


@pytest.fixture
def settled(proofs):
    return lambda *ids, **more: ledger.run(ledger.find(proofs(*ids)), **more)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0001, "<1 ms"),
        (0.0021, "2 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (3.14159, "3.1 s"),
        (61.0, "61.0 s"),
    ],
)
def test_duration(seconds, text):
    assert report.duration(seconds) == text


def test_check_lines():
    decisions = [(decide(s), "proved") for s in load_claims(PAPER, "paper.toml")]
    lines = report.check_lines(decisions)
    assert lines[0].startswith("balance  proved   every ")
    assert lines[0].endswith(" ms")
    assert lines[1].startswith("gated    refuted  already for")
    assert lines[2].startswith("         W = [")
    assert "left = " in "".join(lines)
    assert "right = " in "".join(lines)
    assert any(line.startswith("         left - right = ") for line in lines)
    assert lines[-1] == "1 proved, 1 refuted"
    assert max(map(len, lines[2:-2])) <= 100


def test_long_counterexamples_are_broken_between_matrices():
    decisions = [(decide(s), "proved") for s in load_claims(PAPER, "paper.toml")]
    lines = report.check_lines(decisions, width=40)
    (first, *rest) = [line.strip() for line in lines if "= [" in line or "left = " in line]
    assert rest, "at forty characters the line must be broken"
    whole = "  ".join([first, *rest])
    wide = report.check_lines(decisions, width=1000)
    assert whole in "\n".join(wide)


def test_an_expectation_is_shown_where_it_is_not_met():
    first, second = (decide(s) for s in load_claims(PAPER, "paper.toml"))
    lines = report.check_lines([(first, "refuted"), (second, "refuted")])
    assert lines[0].endswith("(expected refuted)")
    assert lines[1].endswith("(as expected)")


def test_table_in_a_pipe_is_plain_and_fits(settled):
    text = printed(settled("P1", "P2", "P3", "S1", "S2", "S3", "E1", "E2"))
    assert "\x1b" not in text
    assert 80 < max(len(line.rstrip()) for line in text.splitlines()) <= report.WIDTH
    grid = text[: text.index("E1 simulation: error")]
    rows = {line.split()[0]: line for line in grid.splitlines() if line[:1].isalpha()}
    assert "proved" in rows["P1"]
    assert "refuted" in rows["P2"]
    assert "✗" in rows["P3"]
    assert "✗" not in rows["P1"] + rows["P2"] + rows["S1"]
    assert "8 claims: 5 not as claimed, in " in text


def test_numbers_are_the_results(settled):
    assert "1.06 in 1 ± 0.2" in printed(settled("S1"))
    assert "1.05 in 1 ± 0.2" in printed(settled("S1", quick=True))


def test_what_differs_is_explained(settled):
    text = printed(settled("P3", "S2", "S3", "E1"))
    assert "P3 proof doubled: refuted, expected proved" in text
    assert "U = [" in text
    assert "left = " in text
    assert "S2 simulation: unsupported, expected supported" in text
    assert "7.25 outside 1 ± 0.2, worst of 2" in text
    assert "the band: theory says so" in text
    assert "S3 simulation: inconclusive, expected supported" in text
    assert "the null comparison passes too: frozen" in text
    assert "ZeroDivisionError: division by zero" in text


def test_nothing_is_explained_where_all_is_as_claimed(settled):
    result = settled("P1", "P2", "S1")
    assert report.explanations(result) == []
    assert "3 claims: as claimed, in " in printed(result)
    assert "Not as claimed" not in report.markdown(result, {})


def test_markdown(settled, tmp_path):
    result = settled("P3", "S1")
    pictures, problems = report.draw(result, tmp_path)
    assert problems == []
    text = report.markdown(result, pictures)
    assert "| P3 ✗ | Two is three | refuted<br>" in text
    assert "## Not as claimed" in text
    assert "**P3 proof doubled: refuted, expected proved**" in text
    assert "![S1](dot.txt)" in text
    assert "  - measured: 1, 2.5" in text
    assert "  - null, frozen: 0" in text
    assert "  - seed: 3" in text


def test_a_bar_in_a_title_leaves_the_table_whole(proofs, tmp_path):
    place = proofs("P1")
    script = place / "P1.py"
    script.write_text(script.read_text().replace('title="A transpose', 'title="|A|, a transpose'))
    text = report.markdown(ledger.run(ledger.find(place)), {})
    assert r"| P1 | \|A\|, a transpose of a product | proved<br>" in text


def test_the_figure_is_drawn_from_the_saved_results(settled, tmp_path):
    result = settled("S1", quick=True)
    pictures, problems = report.draw(result, tmp_path)
    assert pictures == {"S1": tmp_path / "dot.txt"}
    assert problems == []
    assert (tmp_path / "dot.txt").read_text() == "1.05"


def test_a_figure_that_cannot_be_drawn_is_said(settled, tmp_path):
    pictures, problems = report.draw(settled("S1"), tmp_path / "absent")
    assert pictures == {}
    assert len(problems) == 1
    assert "S1" in problems[0]
    assert "FileNotFoundError" in problems[0]


def test_the_exit_code_is_that_of_the_shown_verdicts(settled):
    saved = json.loads(json.dumps(settled("P1", "S3").to_json(), allow_nan=False))
    outcomes = [o for c in saved["claims"] for k in report.EVIDENCE for o in c[k]]
    assert exit_code((o["verdict"], o["expected"]) for o in outcomes) == 3


def test_no_progress_bar_in_a_pipe():
    file = io.StringIO()
    with report.progress(file) as watch:
        assert watch is None
    assert file.getvalue() == ""


def test_a_progress_bar_on_a_terminal(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(file, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with report.progress(file) as watch:
        assert watch is not None
        watch("N1 training", 2, 3)
    assert "N1 training" in file.getvalue()
    assert "2/3" in file.getvalue()
