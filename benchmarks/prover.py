"""Speed and verdicts of the prover beside its peers, on the same claims in one run.

    python benchmarks/prover.py [--json FILE] [--tensorgrad-python PATH]

prints the table. Every judge gets every claim, in turn, in a process of its own (see `worker.py`);
a claim's time is the least CPU time of its repeated runs, without imports. README.md says what
counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from machine import machine

HERE = Path(__file__).resolve().parent
JUDGES = {"nonmixing": "ours", "sympy": "sympy_judge", "tensorgrad": "tensorgrad_judge"}
RIGHT = {"proved": "true", "refuted": "false"}
LONG = 5.0
"""Seconds after which a run is not repeated."""


@dataclass(frozen=True)
class BenchmarkClaim:
    """One claim in a file of its own, with the verdict that is expected."""

    id: str
    says: str
    expect: str
    text: str


@dataclass
class Result:
    """What a judge said of a claim, and the seconds of each run (CPU, wall, reading the text)."""

    verdict: str
    right: bool
    proof: bool
    counterexample: bool
    how: str
    runs: list[float] = field(default_factory=list[float])
    walls: list[float] = field(default_factory=list[float])
    reading: list[float] = field(default_factory=list[float])

    @property
    def seconds(self) -> float:
        """The least of the runs."""
        return min(self.runs)

    @property
    def judging(self) -> float:
        """The least of the runs without reading the text, which the peers are spared."""
        return min(run - read for run, read in zip(self.runs, self.reading, strict=True))

    def add(self, reply: dict[str, Any]) -> None:
        """One more run."""
        self.runs.append(reply["seconds"])
        self.walls.append(reply["wall"])
        self.reading.append(reply["reading"])


class Judge:
    """A worker process, asked one claim at a time."""

    def __init__(self, name: str, interpreter: str) -> None:
        self.name = name
        environment = {
            **os.environ,
            "PYTHONPATH": str(HERE.parent),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
        }
        command = [interpreter, str(HERE / "worker.py"), JUDGES[name]]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.about: dict[str, Any] | None = self._reply()

    def _reply(self) -> dict[str, Any] | None:
        line = self.process.stdout.readline() if self.process.stdout else ""
        return json.loads(line) if line else None

    def ask(self, claim: BenchmarkClaim, timeout: float) -> dict[str, Any]:
        """One run."""
        if self.process.stdin is None:
            raise RuntimeError(f"{self.name} takes no requests")
        print(
            json.dumps({"text": claim.text, "timeout": timeout}),
            file=self.process.stdin,
            flush=True,
        )
        reply = self._reply()
        if reply is None:
            raise RuntimeError(f"the worker of {self.name} has ended; see its message above")
        return reply

    def close(self) -> None:
        """Let the process end."""
        self.process.communicate()


def load(folder: Path, only: str) -> Iterator[BenchmarkClaim]:
    """The claims of a folder of claim files, each alone with its file's declarations."""
    for path in sorted(folder.glob("*.toml")):
        text = path.read_text()
        head = text.partition("[[claim]]")[0]
        for part, claim in zip(
            text.split("[[claim]]")[1:], tomllib.loads(text)["claim"], strict=True
        ):
            name = f"{path.stem}/{claim['id']}"
            if only in name:
                whole = f"{head}[[claim]]{part}"
                yield BenchmarkClaim(name, claim["says"], claim["expect"], whole)


def measure(
    judges: Sequence[Judge], claims: Sequence[BenchmarkClaim], repeats: int, timeout: float
) -> dict[str, dict[str, Result]]:
    """Results by claim and judge; the judges take turns, so that a busy moment is shared."""
    results: dict[str, dict[str, Result]] = {}
    for number, claim in enumerate(claims, 1):
        found = results[claim.id] = {}
        for _ in range(repeats):
            for judge in judges:
                known = found.get(judge.name)
                if known is not None and known.walls[-1] > LONG:
                    continue
                reply = judge.ask(claim, timeout)
                if known is None:
                    known = found[judge.name] = _result(claim, reply)
                known.add(reply)
        if sys.stderr.isatty():
            print(f"\r{number}/{len(claims)} {claim.id:60}", end="", file=sys.stderr)
    return results


def _result(claim: BenchmarkClaim, reply: dict[str, Any]) -> Result:
    return Result(
        reply["verdict"],
        reply["verdict"] == RIGHT[claim.expect],
        reply["proof"],
        reply["counterexample"],
        reply["how"],
    )


def summary(name: str, results: dict[str, dict[str, Result]]) -> dict[str, Any]:
    """One row of the table."""
    own = [found[name] for found in results.values()]
    right = [result for result in own if result.right]
    row: dict[str, Any] = {
        "right": len(right),
        "wrong": sum(result.verdict in ("true", "false") and not result.right for result in own),
        "abstains": sum(result.verdict == "abstains" for result in own),
        "timeout": sum(result.verdict == "timeout" for result in own),
        "error": sum(result.verdict == "error" for result in own),
        "proofs": sum(result.proof for result in right),
        "counterexamples": sum(result.counterexample for result in right),
        "median_seconds_right": statistics.median(r.seconds for r in right) if right else None,
        "median_seconds_all": statistics.median(r.seconds for r in own),
        "median_seconds_reading": statistics.median(min(r.reading) for r in own),
        "slowest_seconds": max(r.seconds for r in own),
    }
    pairs = [
        (found[name], found["nonmixing"])
        for found in results.values()
        if name != "nonmixing" and found[name].right and "nonmixing" in found
    ]
    if pairs:
        ratios = [peer.seconds / ours.seconds for peer, ours in pairs]
        row["ratio_median"] = statistics.median(ratios)
        row["ratio_median_judging"] = statistics.median(
            peer.judging / ours.judging for peer, ours in pairs
        )
        row["ratio_quartiles"] = (
            statistics.quantiles(ratios, n=4)[::2] if len(ratios) > 1 else ratios * 2
        )
        row["ratio_least"], row["ratio_most"] = min(ratios), max(ratios)
    return row


def table(rows: dict[str, dict[str, Any]], count: int) -> str:
    """The rows as text."""
    lines = [
        f"{count} claims",
        f"{'':12}{'right':>6}{'wrong':>6}{'abst.':>6}{'time':>6}{'error':>6}"
        f"{'proofs':>8}{'c.ex.':>7}{'median':>10}{'slowest':>10}"
        "   peer / ours where the peer is right",
    ]
    for name, row in rows.items():
        ratio = ""
        if "ratio_median" in row:
            low, high = row["ratio_quartiles"]
            ratio = (
                f"   {row['ratio_median']:.1f} (quartiles {low:.1f} to {high:.1f}); "
                f"{row['ratio_median_judging']:.1f} reading apart"
            )
        median = row["median_seconds_right"]
        shown = f"{1e3 * median:.1f} ms" if median is not None else "-"
        lines.append(
            f"{name:12}{row['right']:6}{row['wrong']:6}{row['abstains']:6}{row['timeout']:6}"
            f"{row['error']:6}{row['proofs']:8}{row['counterexamples']:7}{shown:>10}"
            f"{1e3 * row['slowest_seconds']:7.0f} ms{ratio}"
        )
    own = rows.get("nonmixing")
    if own is not None:
        reading = 1e3 * own["median_seconds_reading"]
        lines.append(
            f"nonmixing's time includes reading the claim's text, {reading:.1f} ms (median)"
        )
    return "\n".join(lines)


def misses(name: str, results: dict[str, dict[str, Result]]) -> list[str]:
    """The claims that a judge did not get right, with its reason."""
    return [
        f"  {claim}: {found[name].verdict} ({found[name].how})"
        for claim, found in results.items()
        if not found[name].right
    ]


def save(
    path: Path,
    judges: Sequence[Judge],
    claims: Sequence[BenchmarkClaim],
    results: dict[str, dict[str, Result]],
    rows: dict[str, dict[str, Any]],
) -> None:
    """Everything, as JSON."""
    listed = [
        {
            "id": claim.id,
            "says": claim.says,
            "expect": claim.expect,
            "results": {name: asdict(result) for name, result in results[claim.id].items()},
        }
        for claim in claims
    ]
    about = {judge.name: judge.about for judge in judges}
    whole = {"machine": machine(), "judges": about, "summary": rows, "claims": listed}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare the prover with its peers.")
    parser.add_argument("--claims", type=Path, default=HERE / "claims", help="folder of claims")
    parser.add_argument("--only", default="", help="claims whose file/id contains this")
    parser.add_argument("--judges", nargs="+", choices=list(JUDGES), default=list(JUDGES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one run")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks/prover.json"))
    parser.add_argument("--misses", action="store_true", help="list what each judge did not settle")
    parser.add_argument(
        "--tensorgrad-python",
        default=sys.executable,
        help="interpreter of an environment with tensorgrad (see README.md)",
    )
    return parser.parse_args()


def main() -> int:
    """Run, print, save."""
    options = arguments()
    claims = list(load(options.claims, options.only))
    if not claims:
        print(f"no claims in {options.claims} contain {options.only!r}", file=sys.stderr)
        return 2
    judges: list[Judge] = []
    for name in options.judges:
        python = options.tensorgrad_python if name == "tensorgrad" else sys.executable
        judge = Judge(name, python)
        if judge.about is None:
            print(f"{name} does not start with {python}; left out (see benchmarks/README.md)")
            judge.close()
        else:
            judges.append(judge)
    print(machine())
    for judge in judges:
        about = judge.about or {}
        versions = ", ".join(f"{n} {v}" for n, v in about.get("versions", {}).items())
        print(f"{judge.name}: imports {about.get('imports', 0.0):.2f} s, apart ({versions})")
    results = measure(judges, claims, options.repeats, options.timeout)
    rows = {judge.name: summary(judge.name, results) for judge in judges}
    print(table(rows, len(claims)))
    if options.misses:
        for judge in judges:
            print(f"{judge.name}, not right:", *misses(judge.name, results), sep="\n")
    save(options.json, judges, claims, results, rows)
    for judge in judges:
        judge.close()
    print(f"saved {options.json}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
