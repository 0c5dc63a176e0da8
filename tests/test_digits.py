"""The digits experiment: what must hold, holds; what must fail, fails; nothing was tuned."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread
from matplotlib.text import Text

from nonmixing import plot
from nonmixing.dynamics.integrate import integrate
from nonmixing.ledger import folder, load_script
from nonmixing.networks.tasks import digits_classes, digits_halves
from nonmixing.problem import BilinearProblem, Factors

experiment = load_script(folder("simulations") / "digits.py")


@dataclass(frozen=True)
class Ran:
    results: Mapping[str, Any]
    out: Path
    told: tuple[tuple[str, int, int], ...]


def ran(out: Path, *, quick: bool) -> Ran:
    told: list[tuple[str, int, int]] = []
    results = experiment.main(quick=quick, out=out, progress=lambda *what: told.append(what))
    return Ran(results, out, tuple(told))


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("quick"), quick=True)


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("full"), quick=False)


@pytest.fixture(
    params=[pytest.param("quick"), pytest.param("full", marks=pytest.mark.nightly)], scope="session"
)
def a_run(request: pytest.FixtureRequest) -> Ran:
    return request.getfixturevalue(request.param)


def cases(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (f"{task}, {kind}", case)
        for task in ("halves", "classes")
        for kind, case in results[task]["cases"].items()
    ]


def test_settings_follow_from_the_target():
    """Each number is recomputed here from the theory that the script names for it."""
    for task, judged, width in ((digits_halves(), 10, 16), (digits_classes(), 10, 10)):
        s = task.problem.svd.s
        found = experiment.setting(task.problem, judged)
        assert found.rate == pytest.approx(0.1 / s[0])
        assert found.width == width
        span = found.rate * found.steps
        c = s[judged - 1] / (1 + (s[judged - 1] / 1e-3 - 1) * np.exp(-2 * s[judged - 1] * span))
        assert 0.95 <= c / s[judged - 1] < 0.96
        assert s[judged - 1] / 4.5911 > 1e-3


def modes(problem: BilinearProblem, state: Factors) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of Pᵀ Q R, and the rest."""
    crossed = problem.svd.modes(state.operator)
    return np.diag(crossed), crossed - np.diag(np.diag(crossed))


def test_starts_are_what_they_are_called():
    problem = digits_halves().problem
    with_ = experiment.setting(problem, 10)
    aligned, imbalanced, balanced, gaussian = (
        experiment.start(problem, kind, with_)
        for kind in ("aligned", "imbalanced", "balanced", "gaussian")
    )
    for begin in (aligned, imbalanced):
        strengths, off = modes(problem, begin)
        np.testing.assert_allclose(strengths[:16], 1e-3, atol=1e-15)
        np.testing.assert_allclose(off, 0, atol=1e-15)
    np.testing.assert_allclose(imbalanced.imbalance, problem.svd.s[9] * np.eye(16), atol=1e-14)
    for begin in (aligned, balanced):
        np.testing.assert_allclose(begin.imbalance, 0, atol=1e-15)
    assert np.abs(gaussian.imbalance).max() > 1e-4
    for begin in (balanced, gaussian):
        strengths, off = modes(problem, begin)
        assert np.abs(off).max() > np.abs(strengths).max() / 2
        growing = np.sum((problem.svd.P.T @ begin.U + problem.svd.R.T @ begin.V) ** 2, axis=1) / 4
        assert np.mean(growing) == pytest.approx(1e-3, rel=0.3)


def test_training_is_supported_in_each_mode(a_run):
    for name, case in cases(a_run.results):
        band = case["band"]
        assert case["status"] == "ok"
        assert band["verdict"] == "supported", (name, band["reason"])
        assert set(band["outcomes"]) == {"supported"}
        np.testing.assert_allclose(band["ratio"], 1, atol=0.2, err_msg=name)
        np.testing.assert_allclose(band["fall"], 4, atol=0.8, err_msg=name)


def test_the_numbers_follow_from_the_curves_that_were_saved(a_run):
    """The ratio, recomputed from the saved curves by a formula written out here."""
    for name, case in cases(a_run.results):
        m, f, g = (np.array(case[key]) for key in ("measured", "flow", "modified"))
        ratio = np.sum((m - f) * (g - f), axis=0) / np.sum((g - f) ** 2, axis=0)
        np.testing.assert_allclose(case["band"]["ratio"], ratio, rtol=1e-3, err_msg=name)


def test_every_null_fails_in_every_mode(a_run):
    for _, case in cases(a_run.results):
        for null in ("frozen", "slowed", "hurried"):
            ratio = np.array(case["band"]["null_ratio"][null])
            fall = np.array(case["band"]["null_fall"][null])
            inside = (np.abs(ratio - 1) <= 0.2) & (np.abs(fall - 4) <= 0.8)
            assert not inside.any()


def test_a_shuffled_target_fails_in_every_mode(a_run):
    band = a_run.results["halves"]["cases"]["aligned"]["shuffled"]
    assert band["verdict"] == "unsupported"
    assert set(band["outcomes"]) == {"unsupported"}


def test_independent_modes_fail_where_the_true_solution_holds(a_run):
    for case in a_run.results["classes"]["cases"].values():
        assert case["band"]["verdict"] == "supported"
        for picture in ("independent", "independent-growing"):
            assert case[picture]["prediction"] == "exact: M4"
            assert case[picture]["band"]["verdict"] == "unsupported"
            # Not by a little: it is further off than all that the step size does.
            assert max(case[picture]["distance"]) > 2 * max(case["distance"])


def test_two_ways_to_compute_the_flow_agree(a_run):
    """A step's relative error of 1e-9 grows at most as a mode does, by s_1/c_0 = 515."""
    for name, case in cases(a_run.results):
        if case["prediction"].startswith("exact"):
            assert max(case["floor"]) < 1e-6, name


def test_the_closed_forms_are_the_ones_that_hold(a_run):
    expected = {"aligned": "exact: M4", "imbalanced": "exact: M5", "balanced": "exact: M8"}
    for name, case in cases(a_run.results):
        kind = name.split(", ")[1]
        assert case["prediction"] == expected.get(kind, "integrated: DOP853")


@pytest.mark.nightly
def test_the_full_run_judges_ten_modes_from_four_starts(full):
    halves = full.results["halves"]["cases"]
    assert set(halves) == {"aligned", "imbalanced", "balanced", "gaussian"}
    assert all(len(case["band"]["ratio"]) == 10 for case in halves.values())
    assert set(full.results["classes"]["cases"]) == {"balanced", "gaussian"}


def test_what_is_saved_is_what_is_returned(quick):
    saved = json.loads((quick.out / "digits.json").read_text(encoding="utf-8"))
    assert saved == quick.results
    assert sorted(path.name for path in quick.out.iterdir()) == ["digits.json", "modes.png"]


def test_the_figure_is_drawn_from_the_saved_results_alone(quick, tmp_path):
    again = tmp_path / "again.png"
    experiment.draw(json.loads((quick.out / "digits.json").read_text(encoding="utf-8")), again)
    np.testing.assert_array_equal(imread(again), imread(quick.out / "modes.png"))
    assert imread(again).shape[:2] == (1080, 1920)


def beyond_the_axes(ax: Axes) -> list[Text]:
    """Labels of ticks outside the limits, which are there but never drawn."""
    labels: list[Text] = []
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:
                labels += [tick.label1, tick.label2]
    return labels


def test_the_figure_can_be_read_on_a_projector(quick):
    """Text of at least 15 points on a 16-inch slide, none over another, all of it on the slide."""
    figure = plot.digits(quick.results)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    hidden = {id(label) for ax in figure.axes for label in beyond_the_axes(ax)}
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    shown = [text for text in texts if id(text) not in hidden]
    assert all(float(text.get_fontsize()) >= 15 for text in shown)
    boxes = []
    for text in shown:
        # Of a label with a line to its curve, the label.
        box = Text.get_window_extent(text, renderer)
        assert figure.bbox.x0 <= box.x0, text.get_text()
        assert box.x1 <= figure.bbox.x1, text.get_text()
        assert figure.bbox.y0 <= box.y0, text.get_text()
        assert box.y1 <= figure.bbox.y1, text.get_text()
        boxes.append((text.get_text(), box.padded(-2)))
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        assert not a.overlaps(b), (one, other)


def test_progress_is_told(quick):
    assert [done for _, done, _ in quick.told] == list(range(len(quick.told)))
    assert {total for _, _, total in quick.told} == {len(quick.told)}


@pytest.fixture(scope="module")
def small() -> BilinearProblem:
    generator = np.random.default_rng(3)
    target = generator.standard_normal((5, 4))
    return BilinearProblem(target / np.linalg.norm(target, 2))


@pytest.mark.parametrize("kind", ["aligned", "imbalanced", "balanced", "gaussian"])
def test_the_band_turns_down_another_coefficient(small, kind):
    """η/8 in the place of η/4: half the step's effect, and an error of first order is left (D5)."""
    with_ = experiment.setting(small, 2)
    begin = experiment.start(small, kind, with_)
    measured = experiment.trained(small, begin, with_)
    times = measured.whole.times
    theory = experiment.predicted(small, begin, times, with_.rate, closed_form=kind != "gaussian")
    assert experiment.judge(measured, theory, 2).verdict == "supported"
    wrong = replace(
        theory,
        modified=integrate(small, begin, times, rate=with_.rate / 2),
        modified_half=integrate(small, begin, times, rate=with_.rate / 4),
    )
    verdict = experiment.judge(measured, wrong, 2)
    assert verdict.outcomes == ("unsupported", "unsupported")
    assert np.all(verdict.ratio > 1.2)


def test_drawing_opens_no_window(quick):
    before = pyplot.get_fignums()
    plot.digits(quick.results)
    assert pyplot.get_fignums() == before
