"""The command `nonmixing`: parses, calls, prints.

Exit codes: 0, as claimed; 1, a claim refuted, or a verdict that differs from the expected one; 2,
bad input; 3, undecided or inconclusive and nothing refuted; 130, interrupted. Heavy imports wait
until a command needs them.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from nonmixing.errors import Disagreement, InputError, NonmixingError

if TYPE_CHECKING:
    from nonmixing.algebra import Decision

BAD_INPUT = 2
REFUTED = 1
INTERRUPTED = 130


class Interrupted(Exception):
    """A run that was interrupted; the message says what is left of it."""


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Settle claims about how factored models learn: by proof, simulation and training.",
)


@app.callback(invoke_without_command=True)
def nonmixing(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Say what there is when no command was given."""
    if version:
        from nonmixing import __version__

        print(f"nonmixing {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def verify(
    claims: Annotated[
        list[str] | None, typer.Argument(metavar="[CLAIM ...]", help="Ids; all if none is given.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run the smaller experiments.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the results here too.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("out"),
    proofs: Annotated[
        Path | None, typer.Option(help="Another folder of claims; one script for each.")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Judge broken variants of the statements instead.")
    ] = False,
) -> None:
    """Run the ledger: each claim's proof, simulation and training."""
    from nonmixing import ledger, report

    paths = ledger.find(proofs or ledger.folder("proofs"), claims or [])
    if mutants:
        from nonmixing import mutation

        with report.progress(sys.stderr) as watch:
            tried = mutation.score(paths, watch)
        print("\n".join(mutation.lines(tried)))
        raise typer.Exit(1 if any(item.outcome == "undecided" for item in tried) else 0)
    if json is not None and (json.is_dir() or not json.parent.is_dir()):
        raise InputError(f"--json: {json} cannot be written; give a file in a folder that exists")
    _make_folder(out)
    saved = out / "ledger.json"
    try:
        with report.progress(sys.stderr) as watch:
            result = ledger.run(
                paths, quick=quick, watch=watch, keep=lambda part: ledger.write_json(part, saved)
            )
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {saved} has the claims that were finished") from None
    for path in (saved, json):
        if path is not None:
            ledger.write_json(result, path)
    pictures, problems = report.draw(result, out)
    report.write_text(out / "report.md", report.markdown(result, pictures))
    report.print_result(result)
    for path in (*pictures.values(), out / "report.md", saved):
        print(f"wrote {path}")
    for problem in problems:
        print(f"nonmixing: {problem}", file=sys.stderr)
    raise typer.Exit(result.exit_code or (1 if problems else 0))


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE ...", help="Claim files (TOML).")],
    json: Annotated[bool, typer.Option("--json", help="Print the decisions as JSON.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds for each claim; then it is undecided.")
    ] = None,
) -> None:
    """Judge the claims of claim files: proved, refuted or undecided."""
    from nonmixing.algebra import decide, load_claims
    from nonmixing.algebra.decide import DEFAULT_TIMEOUT
    from nonmixing.claim import expectation
    from nonmixing.verdict import decision_to_json, exit_code

    read = [(path, load_claims(_read(path), str(path))) for path in files]
    limit = DEFAULT_TIMEOUT if timeout is None else timeout
    judged = [
        (path, [(decide(s, timeout=limit), expectation(s)) for s in statements])
        for path, statements in read
    ]
    everything = [pair for _, pairs in judged for pair in pairs]
    if json:
        from json import dumps

        print(dumps([decision_to_json(decision) for decision, _ in everything], indent=2))
    else:
        _print_check(judged)
    raise typer.Exit(exit_code((decision.verdict, expected) for decision, expected in everything))


@app.command()
def derive(
    file: Annotated[Path, typer.Argument(help="A claim file with a [flow].")],
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
) -> None:
    """Print the flow of a claim file's loss, the flow that it induces, and what it conserves."""
    text = _read(file)
    from nonmixing.flow import describe

    print(describe(text, str(file), latex=latex))


@app.command(name="list")
def list_all() -> None:
    """Print the claims and the simulations, one a line."""
    from nonmixing import ledger

    for kind in ("proofs", "simulations"):
        for path in ledger.scripts(ledger.folder(kind)):
            print(f"{path.stem:<16}  {ledger.summary(path)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; what went wrong is one line on the standard error.

    Args:
        arguments: what follows the command's name; the process's own if None.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # closed by the shell
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without some symbol shows `?` for it
            stream.reconfigure(errors="replace")
    try:
        code = app(arguments, prog_name="nonmixing", standalone_mode=False)
        sys.stdout.flush()
    except NonmixingError as problem:
        return _complain(str(problem), BAD_INPUT)
    except Disagreement as problem:
        return _complain(f"internal error: {problem}", REFUTED)
    except Interrupted as problem:
        return _complain(str(problem), INTERRUPTED)
    except typer.TyperException as problem:
        context: typer.Context | None = getattr(problem, "ctx", None)
        command = context.command_path if context is not None else "nonmixing"
        message = problem.format_message().rstrip(".")
        return _complain(f"{message}; see `{command} --help`", BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; the null device keeps the interpreter's last flush quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _complain(f"the output cannot be written: {problem.strerror}", BAD_INPUT)
    if code == INTERRUPTED:
        return _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def run() -> None:
    """The entry point of the installed command."""
    sys.exit(main())


def _complain(message: str, code: int) -> int:
    print(f"nonmixing: {' '.join(message.split())}", file=sys.stderr)
    return code


def _read(path: Path) -> str:
    """The text of a claim file.

    Raises:
        InputError: it is not there, is a folder, may not be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; expected a claim file (TOML)") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a claim file (TOML)") from None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise InputError(
            f"{path}: byte {problem.start} is not UTF-8; expected a claim file (TOML, UTF-8)"
        ) from problem


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"--out: {path} cannot be made a folder: {problem.strerror}; give another one"
        ) from problem


def _print_check(judged: Sequence[tuple[Path, Sequence[tuple[Decision, str]]]]) -> None:
    from nonmixing.report import check_lines

    width = max(40, get_terminal_size((100, 24)).columns)
    for path, decisions in judged:
        if len(judged) > 1:
            print(f"{path}:")
        for line in check_lines(decisions, width=width):
            print(line)
