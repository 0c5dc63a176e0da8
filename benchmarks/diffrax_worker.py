"""The flow by diffrax on one thread: METHOD GIVEN TAKEN RTOL ATOL. Prints JSON.

It runs in an environment of its own, and so imports nothing of this package.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def main() -> None:
    """Compile, run twice, keep the faster."""
    method, given, taken, rtol, atol = sys.argv[1:]
    with np.load(given) as arrays:
        target, U, V, times = (jnp.asarray(arrays[name]) for name in ("target", "U", "V", "times"))

    def velocity(_: Any, state: Any, target: Any) -> Any:
        U, V = state
        return target @ V - U @ (V.T @ V), target.T @ U - V @ (U.T @ U)

    def run(target: Any, state: Any, times: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            getattr(diffrax, method)(),
            times[0],
            times[-1],
            None,
            state,
            args=target,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=float(rtol), atol=float(atol)),
            max_steps=100_000,
        )

    begun = time.process_time()
    compiled = jax.jit(run).lower(target, (U, V), times).compile()
    compile_seconds = time.process_time() - begun
    seconds = wall = float("inf")
    for _ in range(2):
        begun, clock = time.process_time(), time.perf_counter()
        found = jax.block_until_ready(compiled(target, (U, V), times))
        if time.process_time() - begun < seconds:
            seconds, wall = time.process_time() - begun, time.perf_counter() - clock
    np.savez(taken, U=np.asarray(found.ys[0]), V=np.asarray(found.ys[1]))
    about = {
        "diffrax": diffrax.__version__,
        "jax": jax.__version__,
        "compile": compile_seconds,
        "seconds": seconds,
        "wall": wall,
        "steps": int(found.stats["num_steps"]),
    }
    print(json.dumps(about))


if __name__ == "__main__":
    main()
