"""Sweeps: every run once, whole, with its own seed, and the same bits whatever happened between."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweeping

from nonmixing.errors import InputError
from nonmixing.sweep import Run, RunFailed, grid, sweep

TESTS = Path(__file__).parent


def paths(runs: tuple[Run, ...]) -> dict[tuple[int, int], bytes]:
    return {(run.parameters["length"], run.repeat): run.result["path"].tobytes() for run in runs}


def walks(folder: Path, lengths: list[int], **more: Any) -> tuple[Run, ...]:
    log = str(folder.parent / "log")
    each = [{"length": n, "log": log} for n in lengths]
    return sweep(sweeping.walk, each, folder=folder, seed=7, **more)


def logged(folder: Path) -> list[str]:
    return (folder.parent / "log").read_text().split()


def test_a_grid_has_every_combination() -> None:
    assert grid(a=[1, 2], b="x") == ({"a": 1, "b": "x"}, {"a": 2, "b": "x"})


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    (run,) = walks(tmp_path / "s", [5])
    again = walks(tmp_path / "s", [5])[0]
    assert (run.resumed, again.resumed) == (False, True)
    assert run.result["path"].dtype == np.float64
    assert run.result["path"].tobytes() == again.result["path"].tobytes()
    assert run.result["end"] == again.result["end"]
    assert run.result["note"] == "ok"
    assert run.result["none"] is None
    assert logged(tmp_path / "s") == ["5"]


def test_seeds_belong_to_parameters_and_not_to_places(tmp_path: Path) -> None:
    short = paths(walks(tmp_path / "a", [3, 4], repeats=2))
    long = paths(walks(tmp_path / "b", [9, 4, 3], repeats=3))
    for key, path in short.items():
        assert long[key] == path
    assert len({path[:8] for path in long.values()}) == len(long)  # first steps all differ


def test_another_seed_gives_other_numbers(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    one, other = (
        sweep(sweeping.walk, [{"length": 4, "log": log}], folder=tmp_path / str(s), seed=s)
        for s in (1, 2)
    )
    assert one[0].result["end"] != other[0].result["end"]


def test_numpy_numbers_name_the_same_run(tmp_path: Path) -> None:
    walks(tmp_path / "s", [4])
    log = str(tmp_path / "log")
    (run,) = sweep(
        sweeping.walk, [{"length": np.int64(4), "log": log}], folder=tmp_path / "s", seed=7
    )
    assert run.resumed


def test_processes_give_the_bits_of_one_process(tmp_path: Path) -> None:
    """The results of products depend on the number of threads; every run gets one."""
    one, two = (
        sweep(
            sweeping.gram, [{"size": 150}, {"size": 151}], folder=tmp_path / str(j), seed=0, jobs=j
        )
        for j in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert a.result["gram"].tobytes() == b.result["gram"].tobytes()


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
import sweeping
from pathlib import Path
from nonmixing.sweep import sweep
folder = Path(sys.argv[1])
each = [{"length": n, "log": str(folder.parent / "log"), "pause": 0.15} for n in range(1, 13)]
sweep(sweeping.walk, each, folder=folder, seed=7, jobs=int(sys.argv[3]))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path, jobs: int) -> None:
    """kill -9 in the middle, again and again: nothing lost, nothing run twice, the same bits."""
    folder = tmp_path / "s"
    command = [sys.executable, "-c", SCRIPT, str(folder), str(TESTS), str(jobs)]
    for wanted in (3, 7):
        process = subprocess.Popen(command, start_new_session=True)
        deadline = time.monotonic() + 60
        while len(list(folder.glob("runs/*.json"))) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    kept = len(list(folder.glob("runs/*.json")))
    assert 7 <= kept < 12
    log = str(tmp_path / "log")
    each = [{"length": n, "log": log, "pause": 0.15} for n in range(1, 13)]
    before = len(logged(folder))
    runs = sweep(sweeping.walk, each, folder=folder, seed=7)
    assert sum(run.resumed for run in runs) == kept
    assert len(logged(folder)) - before == 12 - kept  # those that were missing, and no others
    plain = sweep(sweeping.walk, each, folder=tmp_path / "other", seed=7, jobs=2)
    assert paths(runs) == paths(plain)


def test_a_failing_run_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    each = [{"length": n} for n in (1, 2, 3)]
    with pytest.raises(RunFailed, match=r"'length': 2.*ZeroDivisionError: no luck") as caught:
        sweep(sweeping.fails, each, folder=tmp_path, seed=0)
    assert "\n" not in str(caught.value)
    assert len(list(tmp_path.glob("runs/*.json"))) == 2


def test_a_killed_worker_is_named(tmp_path: Path) -> None:
    each = [{"length": n} for n in (1, 2, 3)]
    with pytest.raises(RunFailed, match="killed"):
        sweep(sweeping.dies, each, folder=tmp_path, seed=0, jobs=2)


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    command = [sys.executable, "-c", SCRIPT, str(folder), str(TESTS), "1"]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob("runs/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(InputError, match="another sweep is at work"):
            walks(folder, [1])
    finally:
        process.kill()
        process.wait()


def test_bad_input_is_named(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    one = [{"length": 1, "log": log}]
    walks(tmp_path / "s", [1])
    cases: list[tuple[str, dict[str, Any]]] = [
        ("seed: got -1", {"seed": -1}),
        ("repeats: got 0", {"repeats": 0}),
        ("there twice", {"parameters": one * 2}),
        ("cannot be written as JSON", {"parameters": [{"length": float("nan")}]}),
        ("cannot be written as JSON", {"parameters": [{"length": object()}]}),
        ("give another folder", {"seed": 8}),
        ("give another folder", {"experiment": sweeping.fails}),
        ("cannot be written", {"folder": "/proc/nowhere"}),
    ]
    for message, changed in cases:
        arguments: dict[str, Any] = {
            "experiment": sweeping.walk,
            "parameters": one,
            "folder": tmp_path / "s",
            "seed": 7,
            **changed,
        }
        with pytest.raises(InputError, match=message) as caught:
            sweep(arguments.pop("experiment"), arguments.pop("parameters"), **arguments)
        assert "\n" not in str(caught.value)


def test_a_changed_experiment_needs_another_folder(tmp_path: Path) -> None:
    """Results of code that is no longer there must not come back as those of the new one."""
    script = tmp_path / "changing.py"
    found: list[Any] = []
    for factor in (1, 100):
        script.write_text(f"def run(a, seed):\n    return {{'x': {factor} * a}}\n")
        names: dict[str, Any] = {"__name__": "changing"}
        linecache.clearcache()
        exec(compile(script.read_text(), str(script), "exec"), names)
        try:
            found.append(sweep(names["run"], [{"a": 1}], folder=tmp_path / "s", seed=0)[0].result)
        except InputError as error:
            found.append(str(error))
    assert found[0] == {"x": 1}
    assert "its code has changed; give another folder" in found[1]


def test_results_that_are_no_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="SeedSequence cannot be kept"):
        sweep(sweeping.unkeepable, [{}], folder=tmp_path, seed=0)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_result_is_named(tmp_path: Path, content: str) -> None:
    walks(tmp_path / "s", [1])
    (path,) = (tmp_path / "s" / "runs").glob("*.json")
    path.write_text(content)
    with pytest.raises(InputError, match="remove it to run it again"):
        walks(tmp_path / "s", [1])
