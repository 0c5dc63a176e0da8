"""What a benchmark ran on, in one line."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Processor, cores, load and Python; no host name."""
    load = os.getloadavg()[0]
    return (
        f"{_processor()}, {os.cpu_count()} cores, load {load:.1f}, "
        f"Python {platform.python_version()} on {platform.system()}"
    )


def blas() -> str:
    """The BLAS libraries that are loaded, their kernels and threads, in one line."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "BLAS: unknown, as threadpoolctl is not installed"
    found = {
        f"{info['internal_api']} {info['version']}, kernel {info.get('architecture')}, "
        f"{info['num_threads']} thread(s)"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    return "BLAS: " + "; ".join(sorted(found))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
