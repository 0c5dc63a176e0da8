"""The ledger: finds the claims in `proofs/`, has their evidence, keeps the results.

One piece of evidence that fails, or raises, never keeps the others from being had.
"""

from __future__ import annotations

import ast
import json
import platform
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, Literal

from nonmixing import __version__
from nonmixing.claim import Claim, Outcome, Task
from nonmixing.errors import InputError, MissingExtra, NonmixingError
from nonmixing.saving import atomically
from nonmixing.verdict import Evidence, Verdict, exit_code

__all__ = [
    "ClaimResult",
    "LedgerResult",
    "find",
    "folder",
    "load",
    "load_script",
    "run",
    "scripts",
    "summary",
    "write_json",
]

Watch = Callable[[str, int, int], None]
"""Told before each piece of evidence: what comes now, how many are done, of how many."""


@dataclass(frozen=True)
class ClaimResult:
    """The outcomes of one claim.

    Attributes:
        id: the claim's id.
        claim: the claim; None where its script could not be read.
        outcomes: one for each piece of evidence.
    """

    id: str
    claim: Claim | None
    outcomes: tuple[Outcome, ...]

    def of(self, evidence: Evidence) -> tuple[Outcome, ...]:
        """The outcomes of one kind of evidence."""
        return tuple(item for item in self.outcomes if item.verdict.evidence == evidence)

    @property
    def as_claimed(self) -> bool:
        """Whether every piece of evidence came out as the claim says."""
        return all(item.as_expected for item in self.outcomes)

    @property
    def seconds(self) -> float:
        """How long the evidence took."""
        return sum(item.verdict.seconds for item in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """The claim and its outcomes as JSON's types."""
        return {
            "id": self.id,
            "title": self.claim.title if self.claim else "",
            "source": self.claim.source if self.claim else "",
            "lemma": self.claim.lemma if self.claim else "",
            "as_claimed": self.as_claimed,
            "seconds": self.seconds,
            "proof": [item.to_json() for item in self.of("proof")],
            "simulation": [item.to_json() for item in self.of("simulation")],
            "training": [item.to_json() for item in self.of("training")],
        }


@dataclass(frozen=True)
class LedgerResult:
    """The outcomes of a run of the ledger.

    Attributes:
        claims: the claims that were settled, in the ledger's order.
        quick: whether the smaller experiments were run.
        started: when, in ISO 8601.
        seconds: how long the run took, loading included.
        complete: False while claims of the run are still open: it goes on, or was interrupted.
    """

    claims: tuple[ClaimResult, ...]
    quick: bool
    started: str
    seconds: float
    complete: bool

    @property
    def exit_code(self) -> int:
        """0: as claimed; 1: a verdict differs; 3: those that differ settle nothing."""
        outcomes = [item for claim in self.claims for item in claim.outcomes]
        return exit_code((item.verdict.verdict, item.expected) for item in outcomes)

    def to_json(self) -> dict[str, Any]:
        """The whole run as JSON's types; `schema` changes when a field changes its meaning."""
        return {
            "schema": 1,
            "nonmixing": __version__,
            "python": platform.python_version(),
            "started": self.started,
            "seconds": self.seconds,
            "quick": self.quick,
            "complete": self.complete,
            "as_claimed": all(claim.as_claimed for claim in self.claims),
            "claims": [claim.to_json() for claim in self.claims],
        }


def folder(kind: Literal["proofs", "simulations"]) -> Path:
    """The folder of scripts: inside the installed package, else beside it in a checkout.

    Raises:
        InputError: neither place has it.
    """
    package = Path(__file__).parent
    for place in (package / kind, package.parent / kind):
        if place.is_dir():
            return place
    raise InputError(f"{kind}: no such folder in {package} or beside it; install nonmixing again")


def scripts(place: Path) -> tuple[Path, ...]:
    """The scripts of a folder, F2 before F10."""
    found = (path for path in place.glob("*.py") if not path.name.startswith("_"))
    return tuple(sorted(found, key=lambda path: _natural(path.stem)))


def find(place: Path, ids: Sequence[str] = ()) -> tuple[Path, ...]:
    """The scripts of the claims with the given ids, in the ledger's order; all if no id is given.

    Raises:
        InputError: no folder there, no script in it, or an id that no script has.
    """
    if not place.is_dir():
        raise InputError(
            f"proofs: {place} is not a folder; expected one with a script for each claim"
        )
    known = {path.stem: path for path in scripts(place)}
    if not known:
        raise InputError(f"proofs: {place} has no scripts; expected one for each claim, as F1.py")
    for name in ids:
        if name not in known:
            raise InputError(_unknown(name, known))
    return tuple(path for name, path in known.items() if name in ids or not ids)


def load_script(path: Path) -> ModuleType:
    """Run a script of `proofs/` or `simulations/`; a second call returns the same module.

    Raises:
        InputError: no such file.
    """
    path = path.resolve()
    name = f"_nonmixing_{path.parent.name}_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"script: {path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a module up by its name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load(path: Path) -> Claim:
    """The `claim` of a script.

    Raises:
        InputError: the script has no `claim`, or one whose id is not the file's name.
    """
    claim: object = getattr(load_script(path), "claim", None)
    if not isinstance(claim, Claim):
        raise InputError(f"{path.name}: its `claim` is {type(claim).__name__}; expected a Claim")
    if claim.id != path.stem:
        raise InputError(f"{path.name}: its claim is called {claim.id!r}; expected {path.stem!r}")
    return claim


def summary(path: Path) -> str:
    """The first line of a script's docstring, without running the script."""
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    except (SyntaxError, UnicodeDecodeError):
        return "(cannot be read as Python)"
    line = text.splitlines()[0] if text else "(no docstring)"
    return line.removeprefix(f"{path.stem}. ").removesuffix(".")


def run(
    paths: Iterable[Path],
    *,
    quick: bool = False,
    watch: Watch | None = None,
    keep: Callable[[LedgerResult], None] | None = None,
) -> LedgerResult:
    """Have all evidence of the claims in the given scripts.

    Args:
        paths: the scripts, from `find`.
        quick: run the smaller experiments.
        watch: told before each piece of evidence.
        keep: given the results so far, at the start and after each claim, so that an interrupted
            run leaves what it has finished, and nothing older.
    """
    from threadpoolctl import threadpool_limits

    begin = perf_counter()
    result = LedgerResult((), quick, datetime.now(UTC).isoformat(timespec="seconds"), 0.0, False)
    loaded = [(path, _load_or_error(path)) for path in paths]
    total = sum(len(item.tasks()) for _, item in loaded if isinstance(item, Claim))
    done = 0
    if keep is not None:
        keep(result)
    for path, item in loaded:
        if isinstance(item, Outcome):
            settled = ClaimResult(path.stem, None, (item,))
        else:
            outcomes: list[Outcome] = []
            for task in item.tasks():
                if watch is not None:
                    watch(f"{item.id} {task.evidence}", done, total)
                # On one thread: the ledger's matrices are small, and sums come in one order.
                with threadpool_limits(limits=1):
                    outcomes.append(_settle(item, task, quick))
                done += 1
            settled = ClaimResult(item.id, item, tuple(outcomes))
        result = replace(result, claims=(*result.claims, settled), seconds=perf_counter() - begin)
        if keep is not None:
            keep(result)
    return replace(result, complete=True, seconds=perf_counter() - begin)


def write_json(result: LedgerResult, path: Path) -> None:
    """Write the results, so that the file is whole at every moment.

    Raises:
        InputError: the file cannot be written.
    """
    text = _dumps(result.to_json())
    try:
        atomically(path, lambda beside: beside.write_text(text + "\n", encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror}") from problem


def _settle(claim: Claim, task: Task, quick: bool) -> Outcome:
    begin = perf_counter()
    try:
        return claim.settle(task, quick=quick)
    # Whatever goes wrong in one claim is that claim's result: the others must still be settled.
    except MissingExtra as missing:  # this settles nothing, and is no failure of the claim
        seconds = perf_counter() - begin
        word = "undecided" if task.evidence == "proof" else "inconclusive"
        verdict = Verdict(
            verdict=word, evidence=task.evidence, scope=f"not run: {missing}", seconds=seconds
        )
        return Outcome(task.name, task.expected, verdict)
    except (Exception, SystemExit) as problem:
        return _error(task.evidence, task.name, task, problem, perf_counter() - begin)


def _load_or_error(path: Path) -> Claim | Outcome:
    begin = perf_counter()
    try:
        return load(path)
    # As above: a script that cannot be read is reported as its claim's result.
    except (Exception, SystemExit) as problem:
        return _error("proof", "script", None, problem, perf_counter() - begin)


def _error(
    evidence: Evidence, name: str, task: Task | None, problem: BaseException, seconds: float
) -> Outcome:
    details: dict[str, Any] = {}
    message = str(problem).strip().partition("\n")[0] or "no message"
    if not isinstance(problem, NonmixingError):  # its one line says all; others need the place
        message = f"{type(problem).__name__}: {message}{_place(problem)}"
        details["traceback"] = "".join(traceback.format_exception(problem))
    verdict = Verdict(
        verdict="error", evidence=evidence, scope=message, seconds=seconds, details=details
    )
    return Outcome(name, task.expected if task is not None else "proved", verdict)


def _place(problem: BaseException) -> str:
    """Where it was raised; nothing where the message says it already (no Python)."""
    frames = traceback.extract_tb(problem.__traceback__)
    if not frames or frames[-1].filename.startswith("<"):
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _natural(name: str) -> list[tuple[int, str]]:
    """F2 before F10: runs of digits are compared as numbers."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _unknown(name: str, names: Iterable[str]) -> str:
    by_case = {other.casefold(): other for other in names}
    near = [by_case[key] for key in get_close_matches(name.casefold(), by_case, n=3, cutoff=0.3)]
    hint = f"the nearest: {', '.join(near)}; " if near else ""
    return f"CLAIM: there is no claim {name!r}; {hint}`nonmixing list` shows them all"


def _dumps(value: Any) -> str:
    """JSON with indentation, but a list of numbers on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A string in JSON holds no raw line break, so a bracket followed by one opens a list.
    return re.sub(r'\[\n[^\[\]{}"]*\]', lambda found: _one_line(found[0]), text)


def _one_line(text: str) -> str:
    return "[" + " ".join(text[1:-1].split()) + "]"
