"""Where things stand in a claim file, so that a mistake can be shown with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([\w-]+))\s*=\s*(.*)$""")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


@dataclass(frozen=True)
class Entry:
    """A header (with key "") or the first line of an entry; `claim` counts the claims from 1."""

    line: int
    section: str
    claim: int
    key: str
    value: str


class Lines:
    """The headers and entries of a claim file's text, found without reading it as TOML."""

    def __init__(self, text: str) -> None:
        self.entries = tuple(_entries(text))
        self.last = max(1, len(text.splitlines()))

    def claims(self, count: int) -> list[int]:
        """The line of each claim's id, or of its header; 1 where claims are written otherwise."""
        known: dict[int, int] = {}
        for key in ("", "id"):
            own = (e for e in self.entries if e.section == "claim" and e.key == key)
            known |= {e.claim: e.line for e in own}
        return [known.get(number, 1) for number in range(1, count + 1)]

    def of_message(self, message: str) -> int:
        """The line that an error message of the reader is about; 1 if none is found.

        Args:
            message: as `load_claims` words it, without the file's name.
        """
        stated = re.search(r"\(at line (\d+)", message)
        if stated:
            return int(stated[1])
        if message.endswith("(at end of document)"):
            return self.last
        twice = re.match(r"two claims have the id (.+); give", message)
        if twice:
            ids = [e.line for e in self._ids(twice[1])]
            return ids[-1] if ids else 1
        named = re.match(r"claim ('[^']*'|\"[^\"]*\")", message)
        numbered = re.match(r"claim (\d+)", message)
        if named:
            return self._in_claim(next((e.claim for e in self._ids(named[1])), 0), message)
        if numbered:
            return self._in_claim(int(numbered[1]), message)
        return self._in_section(message)

    def _ids(self, name: str) -> list[Entry]:
        """The entries that give a claim this id, written as Python writes it."""
        ids = (e for e in self.entries if e.section == "claim" and e.key == "id")
        return [e for e in ids if repr(_string(e.value)) == name]

    def _in_claim(self, number: int, message: str) -> int:
        """The line of the first word of a message that is a key of the claim, or of its header."""
        own = [e for e in self.entries if e.section == "claim" and e.claim == number]
        lines = {e.key: e.line for e in reversed(own)}
        words = re.findall(r"[\w-]+", message.partition(":")[2])
        wrong = next((word for word in words if word in lines), None)
        if wrong is None and "unknown key" not in message and "needs says" not in message:
            wrong = "says"  # an expression that cannot be read
        return lines.get(wrong or "", lines.get("", 1))

    def _in_section(self, message: str) -> int:
        section = re.search(r"\[([\w.]+)\]", message)
        if section is None:
            return 1
        words = set(re.findall(r"[\w-]+", message))
        inside = [e for e in self.entries if e.section.split(".")[0] == section[1].split(".")[0]]
        exact = [e for e in inside if e.key in words and e.key]
        return next((e.line for e in (*exact, *inside)), 1)


def _entries(text: str) -> Iterator[Entry]:
    section, claim, closing = "", 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if closing:  # inside a string of several lines
            if closing in line:
                closing = ""
            continue
        header, entry = _HEADER.match(line), _KEY.match(line)
        if header and not entry:
            section = header[1]
            claim += section == "claim"
            yield Entry(number, section, claim, "", "")
        elif entry:
            yield Entry(number, section, claim, entry[1] or entry[2] or entry[3], entry[4])
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes


def _string(value: str) -> str:
    quoted = _QUOTED.match(value)
    return (quoted[1] or quoted[2] or "") if quoted else value
