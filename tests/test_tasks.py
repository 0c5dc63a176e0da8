"""The digits tasks: the numbers that are stated of them, and what whitening must do."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingTypeStubs]

from nonmixing.errors import MissingExtra
from nonmixing.networks import tasks
from nonmixing.networks.tasks import Task, digits_classes, digits_halves


@pytest.fixture(scope="module")
def halves() -> Task:
    return digits_halves()


@pytest.fixture(scope="module")
def classes() -> Task:
    return digits_classes()


def samples(task: Task) -> tuple[np.ndarray, np.ndarray]:
    assert task.problem.samples is not None
    return task.problem.samples.inputs, task.problem.samples.outputs


def test_halves_has_the_stated_size(halves):
    assert (halves.images, halves.pixels, halves.support, halves.outputs) == (1797, 32, 31, 32)
    assert halves.problem.shape == (32, 31)


def test_halves_has_the_stated_singular_values(halves):
    s = halves.problem.svd.s
    np.testing.assert_array_equal(s[:6].round(3), [0.515, 0.416, 0.403, 0.310, 0.236, 0.195])
    assert np.all(np.diff(s) < 0)
    assert s[-1] < 1e-4


def test_classes_has_the_stated_size(classes):
    assert (classes.images, classes.pixels, classes.support, classes.outputs) == (1797, 64, 61, 10)
    assert classes.problem.shape == (10, 61)


def test_classes_has_the_stated_singular_values(classes):
    s = classes.problem.svd.s
    assert s[0].round(3) == 0.315
    assert s[-1].round(3) == 0.186
    assert np.all(np.diff(s) < 0)


def test_the_target_is_what_least_squares_finds(halves, classes):
    """On whitened inputs Q* is the regression of the outputs on them."""
    for task in (halves, classes):
        x, y = samples(task)
        found, *_ = np.linalg.lstsq(x, y, rcond=None)
        np.testing.assert_allclose(task.problem.target, found.T, atol=1e-12, rtol=0)


def test_whitening_keeps_the_span_of_the_pixels(halves, classes):
    """The whitened inputs predict each pixel without error: no part of the image is lost."""
    load: Any = load_digits
    pixels = load().data
    upper = pixels[:, :32] - pixels[:, :32].mean(axis=0)
    for task, raw in ((halves, upper), (classes, pixels)):
        x, _ = samples(task)
        np.testing.assert_allclose(x.T @ x / len(x), np.eye(task.support), atol=1e-12, rtol=0)
        np.testing.assert_allclose(x @ (x.T @ raw / len(x)), raw, atol=1e-9, rtol=0)


def test_outputs_of_classes_are_one_hot_and_of_halves_centred(halves, classes):
    _, y = samples(classes)
    np.testing.assert_array_equal(np.unique(y), [0.0, 1.0])
    np.testing.assert_array_equal(y.sum(axis=1), 1.0)
    assert np.abs(samples(halves)[1].mean(axis=0)).max() < 1e-14


def test_two_calls_give_the_same_bits(halves):
    np.testing.assert_array_equal(digits_halves().problem.target, halves.problem.target)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    tasks._digits.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    for task in (digits_halves, digits_classes):
        with pytest.raises(MissingExtra, match=r'pip install "nonmixing\[data\]"'):
            task()


def test_only_asking_for_a_task_loads_scikit_learn():
    code = "import sys, nonmixing.networks.tasks; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
