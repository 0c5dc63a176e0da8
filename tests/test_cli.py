"""The command: exit codes, one clear line for bad input, JSON as the contract has it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import FALSE, TRUE, Command, Done

from nonmixing import ledger

FIELDS = ["id", "verdict", "scope", "left", "right", "difference", "counterexample", "seconds"]
DERIVED = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]
T = ["m", "n"]

[flow]
loss = "norm2(U @ V.T - T) / 2"
variables = ["U", "V"]

[[claim]]
id = "balance"
says = "d(U.T @ U - V.T @ V) == 0"
"""


@pytest.fixture
def claim_file(tmp_path):
    def write(text: str, name: str = "claims.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def complaint(done: Done) -> str:
    """The one line of a command that refuses its input."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("nonmixing: ")
    return line


def test_check_proves(process, claim_file):
    done = process("check", claim_file(TRUE))
    assert done.returncode == 0
    assert done.stderr == ""
    line, count = done.stdout.splitlines()
    assert line.startswith("transpose  proved  every ")
    assert count == "1 proved"


def test_check_refutes(process, claim_file):
    done = process("check", claim_file(FALSE))
    assert done.returncode == 1
    assert "U = [1]:  left = 2, right = 3" in done.stdout or "left = " in done.stdout
    assert done.stdout.splitlines()[-1] == "1 refuted"


def test_check_of_several_files(command, claim_file):
    files = claim_file(TRUE, "a.toml"), claim_file(FALSE, "b.toml")
    done = command("check", *files)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.endswith(".toml:")] == [
        f"{file}:" for file in files
    ]
    done = command("check", "--json", *files)
    assert [item["id"] for item in json.loads(done.stdout)] == ["transpose", "doubled"]


def test_check_json(command, claim_file):
    done = command("check", claim_file(TRUE + FALSE[FALSE.index("[[claim]]") :]), "--json")
    assert done.returncode == 1
    proved, refuted = json.loads(done.stdout)
    assert list(proved) == list(refuted) == FIELDS
    assert (proved["id"], proved["verdict"], proved["counterexample"]) == (
        "transpose",
        "proved",
        None,
    )
    assert isinstance(proved["seconds"], float)
    assert refuted["verdict"] == "refuted"
    example = refuted["counterexample"]
    assert list(example) == ["dims", "values", "left", "right"]
    rows = example["values"]["U"]
    assert all(isinstance(entry, int) for row in rows for entry in row)
    assert example["left"] == [[2 * entry for entry in row] for row in rows]
    assert example["right"] == [[3 * entry for entry in row] for row in rows]
    assert example["left"] != example["right"]


def test_an_expectation_in_the_file_rules_the_exit_code(command, claim_file):
    expecting = FALSE.replace('id = "doubled"', 'id = "doubled"\nexpect = "refuted"')
    assert command("check", claim_file(expecting)).returncode == 0
    wrong = TRUE.replace('id = "transpose"', 'id = "transpose"\nexpect = "refuted"')
    done = command("check", claim_file(wrong))
    assert done.returncode == 1
    assert "expected refuted" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"[matrices\nU = 1", "TOML"),
        (b"\xff\xfe\x00", "UTF-8"),
        (TRUE.replace("(U @ V.T).T", "(U @ W.T).T").encode(), "W"),
        (TRUE.replace("(U @ V.T).T", "(U @ V).T").encode(), "r"),
        (TRUE.replace("(U @ V.T).T", "sin(U @ V.T).T").encode(), "sin"),
        (TRUE.replace("==", "=").encode(), "=="),
        (TRUE.replace("[[claim]]", "[claims]").encode(), "claim"),
    ],
)
def test_bad_claim_files(command, tmp_path, content, said):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    line = complaint(command("check", path))
    assert said in line
    assert "bad.toml" in line


def test_files_that_cannot_be_read(command, process, tmp_path):
    assert "no such file" in complaint(process("check", "absent.toml"))
    assert "folder" in complaint(command("check", tmp_path))
    assert "no such file" in complaint(command("derive", "absent.toml"))


def test_one_bad_file_among_good_ones(command, claim_file):
    done = command("check", claim_file(TRUE), "absent.toml")
    assert "absent.toml" in complaint(done)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["chekc"],
        ["check", "--colour"],
        ["verify", "--json"],
        ["check", "x", "--timeout", "y"],
    ],
)
def test_usage_errors(command, arguments):
    assert "--help" in complaint(command(*arguments))


def test_usage_errors_of_a_process(process):
    assert "--help" in complaint(process("check"))


def test_what_stays_open_is_neither_success_nor_failure(command, claim_file):
    done = command("check", claim_file(TRUE), "--timeout", "0")
    assert done.returncode == 3, done
    assert done.stdout.splitlines()[-1] == "1 undecided"
    done = command("check", claim_file(TRUE), "--timeout", "0", "--json")
    (item,) = json.loads(done.stdout)
    assert (item["verdict"], item["counterexample"]) == ("undecided", None)


def test_a_byte_order_mark_is_no_error(command, tmp_path):
    path = tmp_path / "claims.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TRUE.encode())
    assert command("check", path).returncode == 0


def test_verify(process, proofs, tmp_path):
    done = process("verify", "--proofs", proofs("P1", "P2", "S1"))
    assert done.returncode == 0, done
    assert done.stderr == ""
    assert "3 claims: as claimed" in done.stdout
    assert (tmp_path / "out" / "report.md").read_text(encoding="utf-8").startswith("# The ledger")
    saved = json.loads((tmp_path / "out" / "ledger.json").read_text(encoding="utf-8"))
    assert saved["as_claimed"] is True
    assert saved["complete"] is True
    assert (tmp_path / "out" / "dot.txt").read_text() == "1.0625"


def test_verify_some_quickly_elsewhere(command, proofs, tmp_path):
    proofs("P1", "S1", "E2")
    options = ["--proofs", "proofs", "--quick", "--out", "a/b", "--json", "copy.json"]
    done = command("verify", "S1", *options)
    assert done.returncode == 0, done
    saved = json.loads((tmp_path / "copy.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in saved["claims"]] == ["S1"]
    assert saved["claims"][0]["simulation"][0]["measured"] == 1.05
    assert (tmp_path / "a" / "b" / "dot.txt").read_text() == "1.05"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("claim", "code", "said"),
    [
        ("P3", 1, "left = "),
        ("S2", 1, "7.25 outside 1 ± 0.2"),
        ("S3", 3, "inconclusive"),
        ("E1", 1, "division by zero"),
        ("E2", 1, "SyntaxError"),
    ],
)
def test_verify_says_what_differs(command, proofs, claim, code, said):
    done = command("verify", "--proofs", proofs(claim, "P1"))
    assert done.returncode == code, done
    assert said in done.stdout
    assert "2 claims: 1 not as claimed" in done.stdout


def test_verify_refuses(command, proofs, tmp_path):
    proofs("P1")
    assert "P1" in complaint(command("verify", "P11", "--proofs", "proofs"))
    assert "nowhere" in complaint(command("verify", "--proofs", "nowhere"))
    (tmp_path / "file").write_text("no folder")
    assert "--out" in complaint(command("verify", "--proofs", "proofs", "--out", "file"))


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are POSIX's")
def test_an_interrupt_leaves_what_was_finished(proofs, tmp_path):
    place = proofs("P1")
    (place / "S9.py").write_text("""
import time
from pathlib import Path
from nonmixing.claim import Claim, Experiment

def wait(quick):
    print("waiting", flush=True)
    time.sleep(60)

claim = Claim(id="S9", title="waits", source="test", simulation=(Experiment(wait),))
""")
    arguments = [sys.executable, "-m", "nonmixing", "verify", "--proofs", str(place)]
    running = subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "waiting\n"
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    _, problem = running.communicate(timeout=30)
    assert time.monotonic() - begin < 30
    assert running.returncode == 130
    assert problem == "nonmixing: interrupted; out/ledger.json has the claims that were finished\n"
    saved = json.loads((tmp_path / "out" / "ledger.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in saved["claims"]] == ["P1"]


def test_a_reader_that_leaves_early_hears_no_traceback(tmp_path):
    arguments = [sys.executable, "-m", "nonmixing", "list"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.stderr == ""


def test_derive(command, claim_file):
    done = command("derive", claim_file(DERIVED))
    assert done.returncode == 0, done
    assert "U" in done.stdout
    assert "V" in done.stdout
    latex = command("derive", claim_file(DERIVED), "--latex")
    assert latex.returncode == 0, latex
    assert "\\" in latex.stdout
    complaint(command("derive", claim_file(TRUE)))


def test_list_names_every_script(command):
    done = command("list")
    assert done.returncode == 0, done
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    places = [ledger.folder(kind) for kind in ("proofs", "simulations")]
    assert listed == [path.stem for place in places for path in ledger.scripts(place)]


def test_help_and_version(process):
    bare, asked = process(), process("--help")
    assert bare.returncode == asked.returncode == 0
    for name in ("verify", "check", "derive", "list"):
        assert name in bare.stdout
        assert name in asked.stdout
    assert process("--version").stdout.startswith("nonmixing ")


def test_a_full_device_is_one_line(tmp_path: Path) -> None:
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("there is no /dev/full here")
    with device.open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nonmixing", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_results_that_cannot_be_written_are_refused_before_the_run(command: Command) -> None:
    done = command("verify", "F8", "--json", "nowhere/results.json")
    assert done.returncode == 2
    assert "--json" in done.stderr
    assert done.stdout == ""
