"""Experiments that the tests of sweeps run, at the top of a module so that processes find them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def walk(length: int, log: str, seed: np.random.SeedSequence, pause: float = 0.0) -> dict[str, Any]:
    """A random walk; each run that ends adds a line to the log."""
    steps = np.random.default_rng(seed).standard_normal(length)
    time.sleep(pause)
    with Path(log).open("a") as lines:
        lines.write(f"{length}\n")
    return {"path": np.cumsum(steps), "end": float(steps.sum()), "note": "ok", "none": None}


def gram(size: int, seed: np.random.SeedSequence) -> dict[str, Any]:
    """A product whose last bits depend on the number of threads."""
    matrix = np.random.default_rng(seed).standard_normal((size, size))
    return {"gram": matrix @ matrix.T, "threads": os.environ.get("OMP_NUM_THREADS", "")}


def fails(length: int, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Raises for one length."""
    if length == 2:
        raise ZeroDivisionError("no\nluck")
    return {"length": length, "entropy": seed.entropy}


def dies(length: int, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Its process is killed for one length."""
    del seed
    if length == 2:
        os.kill(os.getpid(), 9)
    return {"length": length}


def unkeepable(seed: np.random.SeedSequence) -> dict[str, Any]:
    """Returns what is no data."""
    return {"seed": seed}
