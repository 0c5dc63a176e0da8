"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there, so that no reader meets half of it.

    What was there before stays until the new file is whole and on the disk.

    Args:
        path: where the file belongs, in a folder that there is.
        write: writes the file at the path that it is given.

    Raises:
        OSError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        with beside.open("rb+") as written:
            os.fsync(written.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
