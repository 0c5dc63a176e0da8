"""Short claims for tests: names by a fixed alphabet, decisions with counterexamples checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from algebra.oracle import separates

from nonmixing.algebra import Decision, Statement, decide, load_claims
from nonmixing.errors import InputError

Result = TypeVar("Result")

SHAPES = {
    **dict.fromkeys("XYZ", ("n", "n")),
    **dict.fromkeys("ABC", ("m", "n")),
    **dict.fromkeys("ST", ("n", "n")),
    **dict.fromkeys("KJ", ("n", "n")),
    **dict.fromkeys("LM", ("n", "n")),
    **dict.fromkeys("OQ", ("n", "n")),
    **dict.fromkeys("GH", ("n", "n")),
    "P": ("m", "r"),
    "R": ("n", "r"),
    "U": ("m", "r"),
    "V": ("n", "r"),
    **dict.fromkeys("xyz", ("n", 1)),
    **dict.fromkeys("uvw", ("m", 1)),
}
KINDS = {
    **dict.fromkeys("ST", "symmetric"),
    **dict.fromkeys("KJ", "skew"),
    **dict.fromkeys("LM", "diagonal"),
    **dict.fromkeys("OQ", "orthogonal"),
    **dict.fromkeys("GH", "invertible"),
    "P": "orthonormal",
}
"""What each letter means in a test, unless the test says otherwise."""


def toml(
    says: str,
    *,
    matrices: dict[str, tuple[object, object]] | None = None,
    kinds: dict[str, object] | None = None,
    scalars: str = "a b c",
    define: dict[str, str] | None = None,
    assume: list[str] | None = None,
    more: str = "",
) -> str:
    """A claim file with one claim; only the letters that occur in it are declared."""
    shapes = SHAPES | (matrices or {})
    everything = " ".join([says, more, *(define or {}).values(), *(assume or [])])
    used = set(re.findall(r"\w+", everything))
    lines = ["[matrices]"]
    lines += [f'"{k}" = {_value(shapes[k])}' for k in shapes if k in used]
    given = KINDS | (kinds or {})
    if matrices is not None and kinds is None:
        given = {k: v for k, v in KINDS.items() if k not in matrices}
    lines += ["[kinds]", *(f'"{k}" = {_value(v)}' for k, v in given.items() if k in used and v)]
    lines += ["[scalars]", *(f"{s} = {{}}" for s in scalars.split() if s not in shapes)]
    lines += ["[define]", *(f"{k} = {_value(v)}" for k, v in (define or {}).items())]
    lines += [more, "[[claim]]", 'id = "c"', f"says = {_value(says)}"]
    if assume:
        lines.append(f"assume = {_value(assume)}")
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value) if isinstance(value, int) else f"'''{value}'''"


def statement(says: str, **declarations: object) -> Statement:
    (only,) = load_claims(toml(says, **declarations), "test.toml")  # type: ignore[arg-type]
    return only


def judged(says: str, *, timeout: float | None = 20, **declarations: object) -> Decision:
    """The decision of a claim; a counterexample is checked by the oracle."""
    text = toml(says, **declarations)  # type: ignore[arg-type]
    (only,) = load_claims(text, "test.toml")
    decision = decide(only, timeout=timeout)
    if decision.verdict == "refuted":
        assert separates(text, decision.counterexample), decision.counterexample
        assert decision.difference not in ("", "0")
    if decision.verdict == "proved":
        assert decision.counterexample is None
        assert decision.difference == "0"
    if decision.verdict == "undecided":
        assert decision.reason
    return decision


def verdict(says: str, **declarations: object) -> str:
    return judged(says, **declarations).verdict  # type: ignore[arg-type]


def in_a_line(make: Callable[[], Result]) -> Result | None:
    """What is made; None where it is refused, which must be done in one line of some length."""
    try:
        return make()
    except InputError as error:
        message = str(error)
    if "\n" in message or len(message) > 500:
        raise AssertionError(f"not one clear line: {message[:2000]}")
    return None
