"""Verdicts to what people and programs read: a table, Markdown, lines for a terminal.

Every word and number comes from the results that are passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from nonmixing.errors import InputError, NonmixingError
from nonmixing.verdict import (
    OPEN,
    WORDS,
    Verdict,
    counterexample_parts,
    numbers_line,
    to_plain,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from nonmixing.algebra import Decision
    from nonmixing.claim import Outcome
    from nonmixing.ledger import ClaimResult, LedgerResult, Watch
    from nonmixing.verdict import Evidence

__all__ = [
    "check_lines",
    "closing_line",
    "draw",
    "duration",
    "explanations",
    "markdown",
    "print_result",
    "progress",
    "table",
]

WIDTH = 100
LEGEND = "✗ marks a claim that is not as claimed; refuted and unsupported can be what is expected."
LONGEST_DETAIL = 40
SHARES = {"": 0.24, "proof": 0.2, "simulation": 0.28, "training": 0.28}
"""How the columns after the claim's id share the width."""
EVIDENCE: tuple[Evidence, ...] = ("proof", "simulation", "training")


def duration(seconds: float) -> str:
    """A time with its unit: `2 ms`, `3.1 s`."""
    if seconds < 0.0005:
        return "<1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def check_lines(decisions: Sequence[tuple[Decision, str]], *, width: int = WIDTH) -> list[str]:
    """The lines of `nonmixing check`: each decision, its counterexample under it, then the count.

    Args:
        decisions: each with the verdict expected of it.
        width: where a line of matrices is broken, in characters.
    """
    names = max((len(item.id) for item, _ in decisions), default=0)
    words = max((len(item.verdict) for item, _ in decisions), default=0)
    scopes = max((len(item.scope) for item, _ in decisions), default=0)
    lines: list[str] = []
    for item, expected in decisions:
        head = f"{item.id:{names}}  {item.verdict:{words}}  {item.scope:{scopes}}"
        lines.append(f"{head}  {duration(item.seconds):>6}" + _expectation(item.verdict, expected))
        lines += [" " * (names + 2) + line for line in decision_lines(item, width - names - 2)]
    return [*lines, count_line([item.verdict for item, _ in decisions])]


def count_line(verdicts: Sequence[str]) -> str:
    """`2 proved, 1 refuted`."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[word]} {word}" for word in WORDS["proof"] if word in counts)


def decision_lines(decision: Decision, width: int) -> list[str]:
    """What stands under a decision that is no proof: counterexample, reason, remainder."""
    lines: list[str] = []
    if decision.verdict == "proved":
        return lines
    if decision.counterexample is not None:
        *values, sides = counterexample_parts(decision.counterexample)
        lines += _pack(values, sides, width)
    if decision.reason:
        lines.append(decision.reason)
    if decision.difference:
        lines.append(f"left - right = {decision.difference}")
    return lines


def table(result: LedgerResult, *, width: int = WIDTH) -> Table:
    """The claims, one a row, with what proof, simulation and training say of each.

    Args:
        result: the ledger's results.
        width: of the table, in characters.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    names = max([len("claim"), *(len(claim.id) + 2 for claim in result.claims)])
    rest = width - names - 2 * len(SHARES)  # two columns of space before each but the first
    grid.add_column("claim", width=names)
    for name, share in SHARES.items():
        grid.add_column(name, width=int(share * rest))
    for claim in result.claims:
        mark = "" if claim.as_claimed else " ✗"
        title = claim.claim.title if claim.claim is not None else "(script not read)"
        cells = [_coloured(cell(claim, kind), claim.of(kind)) for kind in EVIDENCE]
        grid.add_row(Text(claim.id + mark), Text(title), *cells)
    return grid


def cell(claim: ClaimResult, evidence: Evidence) -> list[str]:
    """The lines of one cell of the table."""
    outcomes = claim.of(evidence)
    if not outcomes:
        return ["-"]
    if evidence == "proof":
        words = groupby(outcome.verdict.verdict for outcome in outcomes)
        runs = [(word, len(list(same))) for word, same in words]
        lines = [", ".join(word if size == 1 else f"{word} ×{size}" for word, size in runs)]
        if claim.claim is not None and claim.claim.lemma:
            lines.append("with a lemma")
        return [*lines, duration(sum(outcome.verdict.seconds for outcome in outcomes))]
    lines: list[str] = []
    for outcome in outcomes:
        verdict = outcome.verdict
        named = [f"{outcome.name}:"] if outcome.name else []
        numbers = [numbers_line(verdict)] if verdict.measured is not None else []
        lines += [*named, f"{verdict.verdict}, {duration(verdict.seconds)}", *numbers]
    return lines


def explanations(result: LedgerResult, *, width: int = WIDTH) -> list[list[str]]:
    """For each verdict that differs from the one expected: a headline, then what shows it."""
    blocks: list[list[str]] = []
    for claim in result.claims:
        for outcome in claim.outcomes:
            if not outcome.as_expected:
                blocks.append(_explanation(claim.id, outcome, width))
    return blocks


def closing_line(result: LedgerResult) -> str:
    """How many claims came out as claimed, and how long it took."""
    total = len(result.claims)
    wrong = sum(not claim.as_claimed for claim in result.claims)
    claims = "1 claim" if total == 1 else f"{total} claims"
    said = "as claimed" if not wrong else f"{wrong} not as claimed"
    return f"{claims}: {said}, in {duration(result.seconds)}"


def print_result(result: LedgerResult, *, file: TextIO | None = None) -> None:
    """Print table, explanations and closing line; colour and full width on a terminal only."""
    from rich.console import Console

    console = Console(file=file, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(table(result, width=console.width))
    for headline, *lines in explanations(result, width=console.width - 2):
        console.print(headline, style="bold", soft_wrap=True)
        for line in lines:
            console.print(f"  {line}", soft_wrap=True)
    console.print(LEGEND)
    console.print(closing_line(result))


def markdown(result: LedgerResult, pictures: Mapping[str, Path]) -> str:
    """The report as Markdown.

    Args:
        result: the ledger's results.
        pictures: claim id to its picture, in the folder that the report goes to.
    """
    lines = ["# The ledger", "", f"{closing_line(result)}; started {result.started}"]
    lines[-1] += ", with the quick experiments." if result.quick else "."
    lines += ["", "| claim | statement | " + " | ".join(EVIDENCE) + " |", "|---" * 5 + "|"]
    for claim in result.claims:
        mark = "" if claim.as_claimed else " ✗"
        title = claim.claim.title if claim.claim is not None else "(script not read)"
        cells = ["<br>".join(_escape(line) for line in cell(claim, kind)) for kind in EVIDENCE]
        lines.append(f"| {claim.id}{mark} | {_escape(title)} | {' | '.join(cells)} |")
    lines += ["", LEGEND]
    blocks = explanations(result)
    if blocks:
        lines += ["", "## Not as claimed"]
        for headline, *rest in blocks:
            lines += ["", f"**{_escape(headline)}**", "", *(f"    {line}" for line in rest)]
    for claim in result.claims:
        lines += _section(claim, pictures.get(claim.id))
    return "\n".join(lines) + "\n"


def draw(result: LedgerResult, out: Path) -> tuple[dict[str, Path], list[str]]:
    """Draw the pictures of the claims that have one.

    Returns:
        Claim id to the picture's path, and a line for each picture that could not be drawn.
    """
    pictures: dict[str, Path] = {}
    problems: list[str] = []
    for claim in result.claims:
        if claim.claim is None or claim.claim.figure is None:
            continue
        if any(outcome.verdict.verdict == "error" for outcome in claim.outcomes):
            problems.append(f"{claim.id}: no figure, for its evidence ended in an error")
            continue
        try:
            pictures[claim.id] = claim.claim.figure(claim.to_json(), out)
        # A figure that cannot be drawn must not take the report with it.
        except Exception as problem:
            kind = "" if isinstance(problem, NonmixingError) else f"{type(problem).__name__}: "
            problems.append(f"{claim.id}: no figure, for drawing it ended in {kind}{problem}")
    return pictures, problems


@contextmanager
def progress(file: TextIO) -> Generator[Watch | None]:
    """A progress bar for the ledger on a terminal; None where `file` is not one."""
    if not file.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=file), transient=True) as bar:
        task = bar.add_task("ledger", total=None)

        def watch(label: str, done: int, total: int) -> None:
            bar.update(task, description=label, completed=done, total=total)

        yield watch


def write_text(path: Path, text: str) -> None:
    """Write a report.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror}") from problem


def _explanation(claim_id: str, outcome: Outcome, width: int) -> list[str]:
    verdict = outcome.verdict
    name = f" {outcome.name}" if outcome.name else ""
    headline = (
        f"{claim_id} {verdict.evidence}{name}: {verdict.verdict}, expected {outcome.expected}"
    )
    if verdict.verdict == "error":
        return [headline, verdict.scope]
    lines = [verdict.scope] if verdict.scope else []
    if verdict.decision is not None:
        shown = decision_lines(verdict.decision, width)
        lines += [line for line in shown if line != verdict.scope]
    if verdict.measured is not None:
        lines.append(f"measured {numbers_line(verdict)}")
    if verdict.because:
        lines.append(f"the band: {verdict.because}")
    if verdict.reason and verdict.decision is None:  # a decision's lines have it already
        lines.append(verdict.reason)
    return [headline, *lines]


def _section(claim: ClaimResult, picture: Path | None) -> list[str]:
    """A claim's part of the Markdown report."""
    title = claim.claim.title if claim.claim is not None else "(script not read)"
    lines = ["", f"## {claim.id}. {title}", ""]
    if claim.claim is not None:
        lines.append(f"Source: {claim.claim.source}")
        if claim.claim.lemma:
            lines += ["", f"Lemma, written and not machine-checked: {claim.claim.lemma}"]
    for outcome in claim.outcomes:
        lines += ["", *_item(outcome)]
    if picture is not None:
        lines += ["", f"![{claim.id}]({picture.name})"]
    return lines


def _item(outcome: Outcome) -> list[str]:
    verdict = outcome.verdict
    name = f" `{outcome.name}`" if outcome.name else ""
    expected = "" if outcome.as_expected else f", expected {outcome.expected}"
    lines = [
        f"- {verdict.evidence}{name}: **{verdict.verdict}**{expected} ({duration(verdict.seconds)})"
    ]
    lines.append(f"  - scope: {verdict.scope}")
    if verdict.decision is not None:
        lines.append(f"  - `{verdict.decision.left}` against `{verdict.decision.right}`")
        lines += [f"  - `{line}`" for line in decision_lines(verdict.decision, 10_000)]
    lines += [f"  - {label}: {text}" for label, text in _facts(verdict) if text]
    return lines


def _facts(verdict: Verdict) -> list[tuple[str, str]]:
    facts = [("measured", _several(verdict.measured)), ("predicted", _several(verdict.predicted))]
    facts += [("tolerance", _several(verdict.tolerance)), ("the band", verdict.because)]
    facts += [("reason", verdict.reason if verdict.decision is None else "")]
    facts += [(f"null, {name}", _several(value)) for name, value in verdict.nulls.items()]
    facts += [("hypothesis", text) for text in verdict.hypotheses]
    facts.append(("seed", "" if verdict.seed is None else str(verdict.seed)))
    return facts + [(name, _detail(value)) for name, value in verdict.details.items()]


def _detail(value: object) -> str:
    """A word, a number, or a number for each mode; nothing for what is longer, as a curve is."""
    plain = to_plain(value)
    entries = cast("list[object]", plain) if isinstance(plain, list) else [plain]
    if len(entries) > LONGEST_DETAIL or not all(isinstance(x, str | int | float) for x in entries):
        return ""
    return ", ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in entries)


def _several(value: float | tuple[float, ...] | None) -> str:
    if value is None:
        return ""
    return ", ".join(f"{x:.4g}" for x in (value if isinstance(value, tuple) else (value,)))


def _expectation(verdict: str, expected: str) -> str:
    """Said only where it adds something to the verdict."""
    if verdict == expected:
        return "" if expected == "proved" else "  (as expected)"
    return "" if expected == "proved" else f"  (expected {expected})"


def _pack(values: Sequence[str], sides: str, width: int) -> list[str]:
    """`A = ...  B = ...:  left = ..., right = ...`, broken between parts where it is too long."""
    lines: list[str] = []
    for part in [*(f"{value}:" if value is values[-1] else value for value in values), sides]:
        if lines and len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(part)
    return lines


def _coloured(lines: Sequence[str], outcomes: Sequence[Outcome]) -> Text:
    """Green where the verdict is the expected one; else red, or yellow if it is open."""
    from rich.text import Text

    text = Text("\n".join(lines))
    for outcome in outcomes:
        word = outcome.verdict.verdict
        colour = "green" if outcome.as_expected else "yellow" if word in OPEN else "red"
        text.highlight_regex(rf"\b{word}\b", colour)
    return text


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
