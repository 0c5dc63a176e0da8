"""Claim files as test files: collected, selected, judged, refused."""

import subprocess
import sys
from pathlib import Path
from time import process_time

import pytest
from conftest import TRUE

from nonmixing.testing import failure
from nonmixing.testing.lines import Lines

pytest_plugins = ["pytester"]

LOADED = failure
"""What a run inside this process imports is dropped after it, unless it was there before."""

PAPER = """\
[matrices]
W = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[define]
E = "W @ V.T - T"

[flow]
loss = "norm2(E) / 2"
variables = ["W", "V"]

[[claim]]
id = "balance"
says = "d(W.T @ W - V.T @ V) == 0"

[[claim]]
id = "flow-equation"
says = "d(E) == -E @ V @ V.T - W @ W.T @ E"

[[claim]]  # a slip of the sign
id = "flow-with-a-slip"
says = "d(E) == -E @ V @ V.T + W @ W.T @ E"
expect = "refuted"
"""

WRONG = """
[[claim]]
title = "all mixed up"
id = "wrong"
says = "d(E) == E"

[[claim]]
id = "not-wrong"
says = "E.T == V @ W.T - T.T"
expect = "refuted"

[[claim]]
id = "open"
says = "W == 0"
assume = ["W.T @ W == 0"]
"""


@pytest.fixture
def paper(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".claims.toml", paper=PAPER)
    return pytester


LIGHT = ["-p", "no:jaxtyping", "-p", "no:hypothesispytest"]
"""What a worker need not load."""


def failing(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    pytester.makefile(".claims.toml", paper=PAPER + WRONG)
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=3, failed=3)
    return result


def test_one_item_for_each_claim(paper):
    result = paper.runpytest_inprocess("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "paper.claims.toml::balance PASSED*",
            "paper.claims.toml::flow-equation PASSED*",
            "paper.claims.toml::flow-with-a-slip PASSED*",
        ]
    )


@pytest.mark.parametrize(
    ("options", "passed", "deselected"),
    [
        (["-k", "flow"], 2, 1),
        (["-k", "balance or slip"], 2, 1),
        (["-k", "refuted"], 1, 2),
        (["-k", "proved and not balance"], 1, 2),
        (["-m", "claim"], 3, 0),
        (["-m", "not claim"], 0, 3),
        (["paper.claims.toml::flow-equation"], 1, 0),
    ],
)
def test_selection(paper, options, passed, deselected):
    outcome = paper.inline_run(*options, "--strict-markers")
    assert len(outcome.listoutcomes()[0]) == passed
    assert sum(len(call.items) for call in outcome.getcalls("pytest_deselected")) == deselected


def test_beside_ordinary_tests_in_folders(paper):
    paper.makepyfile(test_one="def test_one(): pass")
    folder = paper.mkdir("claims")
    (folder / "more.claims.toml").write_text(TRUE)
    (folder / "pyproject.toml").write_text("[nothing]")
    (folder / "plain.toml").write_text("not a claim file")
    paper.runpytest_inprocess().assert_outcomes(passed=5)


def test_failures_are_short(pytester):
    lines = failing(pytester).stdout.lines
    begin = lines.index(
        "paper.claims.toml:28: wrong is refuted, already for m = n = r = 1; expected proved"
    )
    assert lines[begin + 1] == "  d(E) == E"
    assert lines[begin + 2].startswith("  W = [")
    assert ":  left = " in lines[begin + 2]
    assert lines[begin + 3].startswith("  left - right = ")
    assert lines[begin + 4].startswith("____")
    second = lines.index(
        "paper.claims.toml:32: not-wrong is proved for every m, n, r; expected refuted"
    )
    assert lines[second + 1] == "  E.T == V @ W.T - T.T"
    assert lines[second + 2].startswith("____")
    third = lines.index("paper.claims.toml:37: open is undecided; expected proved")
    assert lines[third + 1] == "  W == 0"
    assert "no counterexample" in lines[third + 2]
    assert not any("Traceback" in line or "pytest_plugin.py" in line for line in lines)


def test_verbose_failures_have_code_to_paste(pytester, capsys):
    text = failing(pytester, "-v").stdout.str()
    _, _, rest = text.partition("The counterexample, to be pasted:\n\n")
    code = rest.split("\n____")[0]  # as it was printed
    assert code.startswith("import numpy as np\n")
    names: dict[str, object] = {}
    capsys.readouterr()
    exec(compile(code, "pasted", "exec"), names)
    assert names["left"] != names["right"]
    assert capsys.readouterr().out == f"{names['left'] - names['right']}\n"  # pyright: ignore[reportOperatorIssue]


def test_with_xdist(pytester):
    result = failing(pytester, "-n", "2", *LIGHT)
    result.stdout.fnmatch_lines(["paper.claims.toml:28: wrong is refuted*"])


def test_junit_has_the_verdict(paper):
    paper.runpytest_inprocess("--junitxml=out.xml")
    assert (paper.path / "out.xml").read_text().count('name="verdict" value="proved"') == 2


# --- files that cannot be read --------------------------------------------------------------------

BROKEN = {
    "duplicate": (
        PAPER + '[[claim]]\nid = "balance"\nsays = "E == E"\n',
        "26: two claims have the id 'balance'; give each its own",
    ),
    "expectation": (
        PAPER.replace('"refuted"', '"maybe"'),
        "24: claim 'flow-with-a-slip': expect = 'maybe'; it must be one of proved, refuted, "
        "undecided",
    ),
    "toml": (PAPER + "[[claim\n", "25: not valid TOML: "),
    "says": (PAPER.replace("d(E) == -E @ V @ V.T -", "d(E) == -E @ V @ V.T = "), "19: claim "),
    "name": (PAPER.replace("- W @ W.T", "- W @ X.T"), "19: claim 'flow-equation': unknown matrix"),
    "shape": (PAPER.replace("W.T @ W -", "W @ W.T -"), "15: claim 'balance': cannot subtract"),
    "assume": (PAPER + 'assume = ["W"]\n', "25: claim 'flow-with-a-slip': assume: "),
    "key": (PAPER + 'expects = "proved"\n', "25: claim 3: unknown key 'expects'"),
    "no-says": (PAPER + '[[claim]]\nid = "x"\n', "25: claim 'x': needs says"),
    "matrix": (PAPER.replace('T = ["m", "n"]', 'T = ["m"]'), "4: [matrices] T needs"),
    "define": (PAPER.replace("W @ V.T - T", "W @ V - T"), "7: [define] E: "),
    "flow": (PAPER.replace('["W", "V"]', '["W", "X"]'), "11: [flow] variables: 'X' is not"),
    "section": (PAPER + "[surprise]\n", "25: unknown section [surprise]"),
    "empty": ("", "1: the file is empty"),
    "no-claims": ("[matrices]\n", "1: no claims; "),
}


def test_a_mistake_is_a_collection_error_with_its_line(pytester):
    pytester.makefile(".claims.toml", **{name: text for name, (text, _) in BROKEN.items()})
    outcome = pytester.inline_run()
    reports = outcome.getfailedcollections()
    messages = {report.nodeid.split(".")[0]: str(report.longrepr) for report in reports}
    assert set(messages) == set(BROKEN)
    assert len(reports) == len(BROKEN)
    for name, (_, expected) in BROKEN.items():
        message = messages[name]
        assert message.startswith(f"{name}.claims.toml:{expected}"), message
        assert "\n" not in message
    assert outcome.ret == pytest.ExitCode.INTERRUPTED


def test_a_mistake_in_one_file_interrupts(paper):
    text, _ = BROKEN["duplicate"]
    paper.makefile(".claims.toml", broken=text)
    outcome = paper.inline_run()
    assert [len(reports) for reports in outcome.listoutcomes()] == [0, 0, 1]
    assert outcome.ret == pytest.ExitCode.INTERRUPTED


def test_what_is_no_text(pytester):
    (pytester.path / "latin.claims.toml").write_bytes(b"\xff\xfe\xfa")
    (report,) = pytester.inline_run().getfailedcollections()
    assert str(report.longrepr).startswith("latin.claims.toml:1: cannot be read: ")


def test_claims_that_only_the_prover_refuses(pytester):
    text = PAPER + '[[claim]]\nid = "inverse"\nsays = "inv(W.T @ W) == eye(r)"\n'
    pytester.makefile(".claims.toml", paper=text)
    result = pytester.runpytest_inprocess("-k", "inverse")
    result.assert_outcomes(failed=1, deselected=3)
    result.stdout.fnmatch_lines(["paper.claims.toml:26: claim 'inverse': *"])


def test_lines_in_odd_files():
    text = (
        '[matrices]\nX = ["n", "n"]\n[[claim]]\nsays = """\n[[claim]]\nid = "no"\n== X"""\n'
        "[[ claim ]]\n'id' = 'one' # id\nsays = 'X == X'\n[[claim]]\nsays='X == X'\n"
    )
    lines = Lines(text)
    assert lines.claims(3) == [3, 9, 11]
    assert lines.claims(4) == [3, 9, 11, 1]
    assert lines.of_message("claim 'one': cannot read") == 10
    assert lines.of_message("claim 3: unknown key 'x'") == 11
    assert lines.of_message("something else") == 1


# --- settings and cost ----------------------------------------------------------------------------


def test_the_time_limit_can_be_set(paper):
    paper.makeini("[pytest]\nclaim_timeout = 1e-9")
    result = paper.runpytest_inprocess("-k", "flow-equation")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["*flow-equation is undecided; expected proved"])


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none(paper, value):
    paper.makeini(f"[pytest]\nclaim_timeout = {value}")
    result = paper.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "a positive number of seconds is expected" in result.stderr.str()


def modules_after(code: str, folder: Path) -> list[str]:
    code += "\nimport sys; print(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    return done.stdout.splitlines()


def test_where_nobody_uses_it_the_plugin_loads_nothing(tmp_path):
    loaded = modules_after("import pytest, nonmixing.pytest_plugin", tmp_path)
    ours = [name for name in loaded if name.split(".")[0] == "nonmixing"]
    assert ours == ["nonmixing", "nonmixing.pytest_plugin"]
    assert not {"numpy", "sympy", "torch", "hypothesis", "tomllib"} & set(loaded)


def test_collecting_claims_loads_nothing_heavy(tmp_path):
    (tmp_path / "paper.claims.toml").write_text(PAPER)
    code = (
        "import pytest\n"
        f"options = ['-q', '-p', 'no:xdist', *{LIGHT}]\n"
        "assert pytest.main(options) == 0"
    )
    loaded = modules_after(code, tmp_path)
    assert "nonmixing.algebra.decide" in loaded
    assert not {"numpy", "sympy", "torch", "scipy"} & set(loaded)


def test_the_overhead_of_a_file_is_small(pytester):
    """A further file costs little beyond deciding its claims, in processor time."""
    from nonmixing.algebra import decide, load_claims

    files = 20

    def session() -> float:
        begin = process_time()
        assert pytester.inline_run("-q", "-p", "no:cacheprovider").ret == 0
        return process_time() - begin

    pytester.makefile(".claims.toml", paper=PAPER)
    session()  # imports and caches are warm after this
    one = session()
    for number in range(files):
        pytester.makefile(".claims.toml", **{f"paper{number}": PAPER})
    all_files = session()
    begin = process_time()
    for _ in range(files):
        for statement in load_claims(PAPER, "paper"):
            decide(statement)
    bare = process_time() - begin
    overhead = (all_files - one - bare) / files
    print(f"{1000 * overhead:.1f} ms a file, {1000 * bare / files:.1f} ms to decide its claims")
    assert overhead < 0.05
