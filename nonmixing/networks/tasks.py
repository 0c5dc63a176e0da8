"""Two linear tasks on real images: the digits that ship with scikit-learn.

The data are 1797 images of 8×8 pixels with values 0..16 (Alpaydin and Kaynak 1998, UCI "Optical
Recognition of Handwritten Digits", the test part). Nothing is downloaded. Both tasks whiten their
inputs on the support of the second moments, so that the mean squared loss on the samples is
½‖U Vᵀ − Q*‖² plus a constant, with Q* = YᵀX/N.

Whitening undoes any scaling of the inputs. The scaling of the outputs multiplies Q*, and with it
the speed of every mode: pixels are divided by 16, their largest value, so that they lie in [0, 1].
(Raw pixels would give s_1 = 8.23 in place of 0.515, pixels of unit variance 1.69.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nonmixing.errors import MissingExtra
from nonmixing.problem import Array, BilinearProblem, whiten

WHITE_LEVEL = 16.0
"""The largest pixel value in the data."""


@dataclass(frozen=True, eq=False)
class Task:
    """A regression task with whitened inputs.

    Attributes:
        name: How results refer to it.
        says: What is predicted from what.
        problem: The target Q* (m, n) and the samples that it comes from.
        images: The number of samples N.
        pixels: The dimension of the inputs before whitening.
        support: The dimension n that whitening leaves.
        outputs: The dimension m of the outputs.
    """

    name: str
    says: str
    problem: BilinearProblem
    images: int
    pixels: int
    support: int
    outputs: int


def digits_halves() -> Task:
    """The lower half of a digit (32 pixels) from its upper half (32 pixels), both centred.

    The top left pixel never lights up, so that 31 of the 32 input dimensions remain and Q* is
    32×31. Its singular values run 0.515, 0.416, 0.403, 0.310, 0.236, 0.195, ... down to 0: the
    modes come one after the other.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    pixels, _ = _digits()
    upper, lower = pixels[:, :32], pixels[:, 32:]
    return _task(
        "digits-halves",
        "the lower half of an image from its upper half, both centred",
        upper - upper.mean(axis=0),
        lower - lower.mean(axis=0),
    )


def digits_classes() -> Task:
    """The ten classes (one-hot) from all 64 pixels, neither of them centred.

    Three pixels never light up, so that 61 input dimensions remain and Q* is 10×61. Its singular
    values run from 0.315 to 0.186, nearly degenerate: no mode is much faster than the next.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    pixels, labels = _digits()
    return _task(
        "digits-classes",
        "the ten classes from all pixels, second moments not centred",
        pixels,
        np.eye(10, dtype=np.float64)[labels],
    )


def _task(name: str, says: str, inputs: Array, outputs: Array) -> Task:
    whitening = whiten(inputs)
    return Task(
        name=name,
        says=says,
        problem=BilinearProblem.from_samples(whitening.data, outputs),
        images=inputs.shape[0],
        pixels=inputs.shape[1],
        support=whitening.dimension,
        outputs=outputs.shape[1],
    )


@cache
def _digits() -> tuple[Array, NDArray[np.intp]]:
    """The pixels (1797, 64), in [0, 1], and the labels (1797,), both read-only; read once."""
    try:
        from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as missing:
        raise MissingExtra(
            'digits: need scikit-learn, which is not installed; pip install "nonmixing[data]"'
        ) from missing
    load: Any = load_digits
    data, target = load(return_X_y=True)
    pixels = np.asarray(data, dtype=np.float64) / WHITE_LEVEL
    labels = np.array(target, dtype=np.intp)
    for array in (pixels, labels):
        array.setflags(write=False)
    return pixels, labels
