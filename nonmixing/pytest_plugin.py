"""The pytest plugin: every `*.claims.toml` is a test file, with one test for each claim.

Pytest loads this module at every start, also where nobody uses it: what is heavy is imported when
the first claim file is collected.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import isfinite
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nonmixing.algebra import Decision, Statement

SUFFIX = ".claims.toml"
MARK = "claim"
TIMEOUT = "claim_timeout"
PASTE = "to be pasted:"
"""How a failure of `nonmixing.testing` announces code."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting for the time limit."""
    parser.addini(TIMEOUT, f"Seconds for each claim of a *{SUFFIX} file; then it is undecided.")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark that every claim has, and check the setting."""
    config.addinivalue_line("markers", f"{MARK}: a claim of a *{SUFFIX} file (nonmixing)")
    _timeout(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ClaimFile | None:
    """Take the claim files."""
    if not file_path.name.endswith(SUFFIX):
        return None
    return ClaimFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the code in a failed assertion of `nonmixing.testing` so that it can be pasted."""
    report = yield
    if call.excinfo is not None and PASTE in str(call.excinfo.value):
        traceback = getattr(report.longrepr, "reprtraceback", None)
        for entry in getattr(traceback, "reprentries", ()):
            _bare(entry.lines)
    return report


def _bare(lines: list[str]) -> None:
    """Take pytest's `E` and the margin from the lines below the one that announces code."""
    for number, line in enumerate(lines):
        if line.startswith("E ") and line.rstrip().endswith(PASTE):
            code = dedent("\n".join(each[1:] for each in lines[number + 1 :]))
            lines[number + 1 :] = ["", *code.strip().splitlines()]
            return


class ClaimFile(pytest.File):
    """A claim file: one item for each of its claims, in order."""

    def collect(self) -> Iterator[ClaimItem]:
        """Read the file; a mistake in it is a collection error with its line."""
        from nonmixing.algebra import load_claims
        from nonmixing.errors import InputError
        from nonmixing.testing.lines import Lines

        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self.CollectError(f"{self.place(1)}: cannot be read: {error}") from None
        lines = Lines(text)
        try:
            statements = load_claims(text, self.path.name)
        except InputError as error:
            message = str(error).removeprefix(f"{self.path.name}: ")
            place = self.place(lines.of_message(message))
            raise self.CollectError(f"{place}: {message}") from None
        for statement, line in zip(statements, lines.claims(len(statements)), strict=True):
            yield ClaimItem.from_parent(  # pyright: ignore[reportUnknownMemberType]
                self, name=statement.id, statement=statement, line=line
            )

    def place(self, line: int) -> str:
        """The file as the user would write it, and a line of it."""
        try:
            shown = self.path.relative_to(self.config.invocation_params.dir)
        except ValueError:
            shown = self.path
        return f"{shown}:{line}"


class ClaimItem(pytest.Item):
    """A claim: passes where the prover says what is expected, `proved` if nothing else is."""

    def __init__(
        self, name: str, parent: ClaimFile, *, statement: Statement, line: int, **kwargs: Any
    ) -> None:
        super().__init__(name, parent, **kwargs)  # pyright: ignore[reportUnknownMemberType]
        self.statement = statement
        self.line = line
        self.expected = statement.expect or "proved"
        self.add_marker(MARK)
        self.extra_keyword_matches.add(self.expected)

    def runtest(self) -> None:
        """Decide the claim."""
        from nonmixing.algebra import decide
        from nonmixing.algebra.decide import DEFAULT_TIMEOUT

        limit = _timeout(self.config)
        decision = decide(self.statement, timeout=DEFAULT_TIMEOUT if limit is None else limit)
        self.user_properties.append(("verdict", decision.verdict))
        if decision.verdict != self.expected:
            raise ClaimFailed(decision)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A few lines in place of a traceback; -v adds the counterexample as NumPy code."""
        from nonmixing.errors import NonmixingError

        error, place = excinfo.value, self._place()
        if isinstance(error, ClaimFailed):
            verbose = self.config.get_verbosity() > 0
            return f"{place}: {_explain(self.statement, error.decision, self.expected, verbose)}"
        if isinstance(error, NonmixingError):
            return f"{place}: {error}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line (counted from 0) and name."""
        return self.path, self.line - 1, self.name

    def _place(self) -> str:
        return self.parent.place(self.line) if isinstance(self.parent, ClaimFile) else self.name


class ClaimFailed(Exception):
    """The prover's verdict is not the expected one."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.verdict)
        self.decision = decision


def _explain(statement: Statement, decision: Decision, expected: str, verbose: bool) -> str:
    from nonmixing.testing.failure import explain, verdict_line
    from nonmixing.verdict import counterexample_line

    headline = f"{statement.id} is {verdict_line(decision)}; expected {expected}"
    if verbose:
        return explain(headline, statement, decision)
    lines = [headline, f"  {statement.says}"]
    if decision.reason:
        lines.append(f"  {decision.reason}")
    if decision.counterexample is not None:
        lines.append(f"  {counterexample_line(decision.counterexample)}")
    if decision.verdict != "proved" and decision.difference:
        lines.append(f"  left - right = {decision.difference}")
    return "\n".join(lines)


def _timeout(config: pytest.Config) -> float | None:
    """The setting; None where it is not set."""
    text = str(config.getini(TIMEOUT) or "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (isfinite(seconds) and seconds > 0):
        raise pytest.UsageError(f"{TIMEOUT} = {text!r}: a positive number of seconds is expected")
    return seconds
