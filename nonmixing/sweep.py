"""Many runs of one function: in parallel, checkpointed, and the same bits however they are run.

Every run has parameters, a repeat number and a seed of its own, a branch of one tree
(`numpy.random.SeedSequence`). The branch is named by the parameters themselves and not by the place
of the run in the list, so that a longer or reordered sweep repeats nothing and changes nothing.
A run that is done is one file, written whole or not at all. A sweep that was killed goes on from
there when it is called again.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import itertools
import json
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from nonmixing.arrays import whole_number
from nonmixing.errors import InputError, NonmixingError
from nonmixing.saving import atomically

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Parameters: TypeAlias = Mapping[str, Any]
"""Arguments of one run, by name: numbers, texts, booleans, None, and lists and mappings of them."""
Experiment: TypeAlias = Callable[..., Mapping[str, Any]]

_ARRAY = "ndarray"


class RunFailed(NonmixingError):
    """One run of a sweep raised; what the others found is kept."""


@dataclass(frozen=True)
class Run:
    """One run that is done.

    Attributes:
        parameters: its arguments.
        repeat: which repeat of these parameters it is, from 0.
        result: what the function returned: numbers, texts, lists, mappings, NumPy arrays.
        resumed: whether it was found done, and not run by this call.
    """

    parameters: Parameters
    repeat: int
    result: Mapping[str, Any]
    resumed: bool


def grid(**choices: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    """Every combination of the choices, the last one varying fastest."""
    names = list(choices)
    return tuple(
        dict(zip(names, values, strict=True)) for values in itertools.product(*choices.values())
    )


def sweep(
    experiment: Experiment,
    parameters: Sequence[Parameters],
    *,
    folder: str | Path,
    seed: int,
    repeats: int = 1,
    jobs: int = 1,
    progress: bool | None = None,
) -> tuple[Run, ...]:
    """Run a function for each set of parameters, `repeats` times each.

    Numerical libraries get one thread a run, since their results depend on it; so a run gives the
    same bits with any number of jobs. Under joblib's `parallel_config` the runs go to another
    backend, such as Dask's.

    Args:
        experiment: called as `experiment(**parameters, seed=...)` with a `SeedSequence`; returns a
            mapping of numbers, texts, lists, mappings and NumPy arrays. A function at the top of a
            module, so that other processes can import it.
        parameters: of each run; `grid` makes them.
        folder: where finished runs are kept, for this experiment and seed alone. An experiment
            whose own source has changed needs another folder; what it calls is not looked into, so
            take another one after changes there, too.
        seed: root of the tree of seeds, a whole number.
        repeats: runs of each set of parameters, with a seed each.
        jobs: processes; -1 for one a core.
        progress: show a progress bar; by default where errors go to a terminal.

    Returns:
        The runs, parameters by parameters, repeat by repeat.

    Raises:
        InputError: parameters that are no JSON, or twice the same; a folder that belongs to another
            experiment, code or seed, or at which another sweep is at work.
        RunFailed: a run raised, or returned what cannot be kept. Others that are done are kept.
    """
    root = whole_number("seed", seed, 0)
    count = whole_number("repeats", repeats, 1)
    place = Path(folder)
    tasks = [
        _Task(dict(each), repeat, _name(each, repeat))
        for each in parameters
        for repeat in range(count)
    ]
    _refuse_twins(tasks)
    with _only_sweep(place):
        _claim(place, experiment, root)
        missing = [task for task in tasks if not task.path(place).exists()]
        _run_all(experiment, missing, place, root, jobs, progress)
        new = {task.name for task in missing}
        return tuple(
            Run(task.parameters, task.repeat, _load(task.path(place)), task.name not in new)
            for task in tasks
        )


@dataclass(frozen=True)
class _Task:
    parameters: dict[str, Any]
    repeat: int
    name: str

    def path(self, folder: Path) -> Path:
        return folder / "runs" / f"{self.name}.json"

    def seed(self, root: int) -> np.random.SeedSequence:
        """The branch of the tree that the parameters and the repeat name."""
        digest, _, repeat = self.name.partition("-")
        words = [int(digest[i : i + 8], 16) for i in range(0, len(digest), 8)]
        return np.random.SeedSequence(root, spawn_key=(*words, int(repeat)))


def _name(parameters: Parameters, repeat: int) -> str:
    """The name of a run: a digest of its parameters, and the repeat."""
    try:
        text = json.dumps(_plain(parameters), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"parameters: {dict(parameters)!r} cannot be written as JSON ({error}); numbers, "
            "texts, booleans, None, and lists and mappings of them are expected"
        ) from None
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]}-{repeat}"


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, so that np.float64(0.1) and 0.1 name one run."""
    if isinstance(value, np.generic):
        return cast(Json, value.item())
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        if not all(isinstance(key, str) for key, _ in items):
            raise TypeError("the names of a mapping are texts")
        return {key: _plain(each) for key, each in items}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[Any]", value)]
    return value


def _refuse_twins(tasks: Sequence[_Task]) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.name in seen:
            raise InputError(
                f"parameters: {task.parameters} stand there twice; name each set once, and use "
                "repeats= for several runs of it"
            )
        seen.add(task.name)


# --- the folder -----------------------------------------------------------------------------------


@contextmanager
def _only_sweep(folder: Path) -> Generator[None]:
    """Hold the folder; the lock goes with the process, however it ends."""
    from filelock import FileLock, Timeout

    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise InputError(
            f"folder: another sweep is at work in {folder}; wait for it, or give another folder"
        ) from None
    except OSError as error:
        raise InputError(f"folder: {folder} cannot be written ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()


def _claim(folder: Path, experiment: Experiment, seed: int) -> None:
    """Write down whose folder this is, or see that it is ours."""
    # A partial and an instance have no name of their own: their type's does.
    named = experiment if hasattr(experiment, "__qualname__") else type(experiment)
    name = f"{named.__module__}.{named.__qualname__}"
    ours = {"experiment": name, "seed": seed, "code": _code(named)}
    path = folder / "sweep.json"
    if not path.exists():
        text = json.dumps(ours, indent=1) + "\n"
        atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))
        return
    theirs = _read(path)
    if theirs != ours:
        raise InputError(
            f"folder: {folder} holds runs of {theirs.get('experiment')} with seed "
            f"{theirs.get('seed')}, not of {ours['experiment']} with seed {seed}"
            + (
                ", as it stands now: its code has changed"
                if {**theirs, "code": ours["code"]} == ours
                else ""
            )
            + "; give another folder"
        )


def _code(named: object) -> str:
    """A digest of the experiment's own source; what it calls is not looked into."""
    try:
        source = inspect.getsource(cast(Any, named))
    except (OSError, TypeError):  # typed at a prompt, or not written in Python
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, Any]:
    try:
        content: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"folder: {path} cannot be read ({error}); remove it to run it again"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"folder: {path} is no file of a sweep; remove it to run it again")
    return cast("dict[str, Any]", content)


def _load(path: Path) -> Mapping[str, Any]:
    content = _read(path)
    if "result" not in content:
        raise InputError(f"folder: {path} holds no result; remove it to run it again")
    return cast("Mapping[str, Any]", _decoded(content["result"]))


# --- the runs -------------------------------------------------------------------------------------


def _run_all(
    experiment: Experiment,
    tasks: Sequence[_Task],
    folder: Path,
    root: int,
    jobs: int,
    progress: bool | None,
) -> None:
    if not tasks:
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError
    from rich.console import Console
    from rich.progress import track

    shown = sys.stderr.isatty() if progress is None else progress
    library: Any = joblib  # it has no types
    one: Any = library.delayed(_run_one)
    calls = (one(experiment, task, folder, root) for task in tasks)
    failed = ""
    try:
        pool = library.Parallel(n_jobs=jobs, return_as="generator_unordered")
        done: Iterator[str] = pool(calls)
        console = Console(stderr=True)
        for message in track(done, "running", len(tasks), console=console, disable=not shown):
            failed = failed or message
    except TerminatedWorkerError:
        raise RunFailed(
            "a process that ran for the sweep was killed, for want of memory perhaps; "
            "call it again to go on, with fewer jobs"
        ) from None
    if failed:
        raise RunFailed(failed)


def _run_one(experiment: Experiment, task: _Task, folder: Path, root: int) -> str:
    """One run, checkpointed; returns what went wrong, so that the others go on."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(limits=1):
            result = experiment(**task.parameters, seed=task.seed(root))
        content = {
            "parameters": _plain(task.parameters),
            "repeat": task.repeat,
            "result": _encoded(result),
        }
        text = json.dumps(content)
    except Exception as error:  # whatever an experiment raises is reported, with its parameters
        line = " ".join(f"{type(error).__name__}: {error}".split())
        return f"the run with {task.parameters} (repeat {task.repeat}) failed: {line}"
    atomically(task.path(folder), lambda beside: beside.write_text(text, encoding="utf-8"))
    return ""


def _encoded(value: Any) -> Json:
    """The value as JSON, arrays with their very bytes."""
    if isinstance(value, np.ndarray):
        given = cast("NDArray[Any]", value)
        array = np.ascontiguousarray(given)
        if array.dtype.hasobject:
            raise TypeError("an array of objects cannot be kept")
        data = base64.b64encode(array.tobytes()).decode()
        return {_ARRAY: data, "dtype": array.dtype.str, "shape": list(given.shape)}
    if isinstance(value, np.generic):
        return cast(Json, value.item())
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        if not all(isinstance(key, str) for key, _ in items):
            raise TypeError("the names in a result are texts")
        return {key: _encoded(each) for key, each in items}
    if isinstance(value, list | tuple):
        return [_encoded(each) for each in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"a result of type {type(value).__name__} cannot be kept; return arrays, "
        "numbers, texts, lists and mappings"
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        content = cast("dict[str, Any]", value)
        if set(content) == {_ARRAY, "dtype", "shape"}:
            flat = np.frombuffer(base64.b64decode(content[_ARRAY]), np.dtype(content["dtype"]))
            return flat.reshape(content["shape"]).copy()
        return {key: _decoded(each) for key, each in content.items()}
    return value
