"""One thread for torch, used by the scripts beside this one that train networks themselves."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Generator[None]:
    """Sums are always taken in the same order, and small matrices do not wait for idle threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
