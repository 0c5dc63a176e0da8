"""One judge in a process of its own: `worker.py MODULE` reads requests and answers them as JSON.

Each request is judged in a fork of the warm process: imports and general caches are warm, what a
judge caches about this claim is not, and a run that takes too long is ended. Only the judge's
answer is timed; what its `prepare` does is not. Seconds are the process's CPU seconds (every judge
runs on one thread), which a busy machine does not stretch by waiting; the wall clock is kept too.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
import warnings
from importlib import metadata
from typing import Any, Literal

from judges.answer import Answer

PACKAGES = ("nonmixing", "sympy", "tensorgrad", "torch", "numpy")

WARM_UP = tuple(
    f"""
[matrices]
M1 = ["p", "q"]
M2 = ["p", "p"]
M3 = ["p", "q"]
[scalars]
alpha = {{}}
[flow]
loss = "norm2(M2 @ M1 - M3)"
variables = ["M1"]
[[claim]]
id = "warm-up"
says = "{says}"
"""
    for says in (
        "d(M1) == -2 * M2.T @ (M2 @ M1 - M3)",
        "(alpha * M2 + M2.T) @ M1 == alpha * M2 @ M1 + M2.T @ M1",
        "M2 @ M2.T == M2.T @ M2",
    )
)


def main() -> None:
    """Say what there is, then answer until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to the errors
    start = time.perf_counter()
    try:
        judge = importlib.import_module(f"judges.{sys.argv[1]}")
    except ModuleNotFoundError as error:
        raise SystemExit(str(error)) from None
    imports = time.perf_counter() - start
    warnings.simplefilter("ignore")  # SymPy turns its own deprecation warnings on
    for text in WARM_UP * 2:
        judge.judge(judge.prepare(text))
    gc.collect()
    gc.freeze()
    print(json.dumps({"versions": _versions(), "imports": imports}), file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        reply = _forked(judge, request["text"], request["timeout"])
        print(json.dumps(reply), file=replies, flush=True)


def _versions() -> dict[str, str]:
    """Of the packages that are installed here and loaded."""
    return {
        name: metadata.version(name)
        for name in PACKAGES
        if name in sys.modules and metadata.packages_distributions().get(name)
    }


def _forked(judge: Any, text: str, timeout: float) -> dict[str, Any]:
    """The answer of a child process, with its seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, json.dumps(_timed(judge, text)).encode())
        os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], timeout)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return _failed("timeout", f"over {timeout:g} s", timeout)
        with os.fdopen(os.dup(reading), "rb") as pipe:
            reply = pipe.read()
        return json.loads(reply) if reply else _failed("error", "the process died", 0.0)
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def _timed(judge: Any, text: str) -> dict[str, Any]:
    for warm_up in WARM_UP:  # pages that the fork shares are copied here
        judge.judge(judge.prepare(warm_up))
    prepared = judge.prepare(text)
    wall, start = time.perf_counter(), time.process_time()
    try:
        answer: Answer = judge.judge(prepared)
    except Exception as error:  # a peer may fail in any way; that is a result too
        answer = Answer("error", how=f"{type(error).__name__}: {error}"[:300])
    seconds, elapsed = time.process_time() - start, time.perf_counter() - wall
    return {**dataclasses.asdict(answer), "seconds": seconds, "wall": elapsed}


def _failed(verdict: Literal["error", "timeout"], how: str, seconds: float) -> dict[str, Any]:
    answer = Answer(verdict, how=how)
    return {**dataclasses.asdict(answer), "seconds": seconds, "wall": seconds}


if __name__ == "__main__":
    main()
