"""Python's recursion limit, raised while somebody needs it; it is one for all threads."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_users = 0
_before = 0


@contextmanager
def recursion_limit(least: int) -> Generator[None]:
    """At least this limit inside; what it was before once the last one is out."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = sys.getrecursionlimit()
        _users += 1
        sys.setrecursionlimit(max(sys.getrecursionlimit(), least))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_before)
