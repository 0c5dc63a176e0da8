"""Figures: what is drawn is what was passed in, and it can be read from the back of a room."""

import subprocess
import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from scipy.optimize import isotonic_regression

from nonmixing import plot
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError
from nonmixing.problem import BilinearProblem, aligned


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield
    pyplot.close("all")


def a_run(source: str, *, modes: int = 3, with_problem: bool = True, count: int = 50) -> Trajectory:
    """A made-up run in which each mode rises in a straight line to its singular value."""
    problem = BilinearProblem(np.diag(np.linspace(1.0, 0.2, modes)))
    times = np.linspace(0.0, 5.0, count)
    end = aligned(problem, np.sqrt(problem.svd.s))
    part = np.sqrt(times / times[-1])[:, None, None]
    return Trajectory.from_arrays(
        times, part * end.U, part * end.V, problem=problem if with_problem else None, source=source
    )


def lines(ax: Axes, *, dots: bool) -> list[Line2D]:
    """The lines with data, without those that only stand in the key."""
    drawn = [line for line in ax.get_lines() if len(np.asarray(line.get_xdata()))]
    return [line for line in drawn if (line.get_linestyle() == "None") == dots]


@pytest.mark.parametrize("source", ["exact: M4", "integrated: DOP853, rate 0.1"])
def test_predictions_are_curves_and_measurements_dots(source):
    exact, trained = a_run(source), a_run("trained")
    ax = plot.modes(exact, trained)
    curves, dots = lines(ax, dots=False), lines(ax, dots=True)
    assert len(curves) == len(dots) == 3
    for i, (curve, dot) in enumerate(zip(curves, dots, strict=True)):
        np.testing.assert_array_equal(np.asarray(curve.get_ydata()), exact.modes()[:, i])
        np.testing.assert_array_equal(np.asarray(dot.get_ydata()), trained.modes()[:, i])
        assert to_rgb(curve.get_color()) == to_rgb(dot.get_color())
        assert curve.get_marker() == "None"
        assert dot.get_zorder() > curve.get_zorder()
    assert len({to_rgb(curve.get_color()) for curve in curves}) == 3


def test_colours_run_from_dark_to_light():
    ax = plot.modes(a_run("exact: M4", modes=10))
    weights = np.array([0.2126, 0.7152, 0.0722])
    lightness = [weights @ to_rgb(curve.get_color()) for curve in lines(ax, dots=False)]
    assert np.all(np.diff(lightness) > 0)
    assert lightness[-1] < 0.7


def test_ten_modes_unless_told_otherwise():
    run = a_run("exact: M4", modes=12)
    assert len(lines(plot.modes(run), dots=False)) == 10
    assert len(lines(plot.modes(run, modes=12), dots=False)) == 12
    some = lines(plot.modes(run, modes=[1, 4]), dots=False)
    np.testing.assert_array_equal(np.asarray(some[0].get_ydata()), run.modes()[:, 1])
    np.testing.assert_array_equal(np.asarray(some[1].get_ydata()), run.modes()[:, 4])


def test_a_mode_keeps_its_number():
    ax = plot.modes(a_run("exact: M4", modes=6), modes=[0, 3, 5])
    assert sorted(text.get_text() for text in ax.texts) == ["1", "4", "6"]


def test_a_run_without_a_problem_is_seen_in_the_modes_of_the_other():
    exact, recorded = a_run("exact: M4"), a_run("recorded", with_problem=False)
    ax = plot.modes(recorded, exact)
    for i, dot in enumerate(lines(ax, dots=True)):
        np.testing.assert_allclose(np.asarray(dot.get_ydata()), exact.modes()[:, i], atol=1e-14)


def test_the_callers_axes_and_settings_are_respected():
    before = dict(mpl.rcParams)
    _, ax = pyplot.subplots()
    assert plot.modes(a_run("exact: M4"), ax=ax) is ax
    assert ax.xaxis.label.get_fontsize() == mpl.rcParams["font.size"]
    own = plot.modes(a_run("exact: M4"))
    assert own is not ax
    assert float(own.xaxis.label.get_fontsize()) >= 16
    assert dict(mpl.rcParams) == before


def test_the_key_names_each_route_once():
    legend = plot.modes(a_run("exact: M4"), a_run("trained")).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["exact: M4", "trained"]


def test_dots_do_not_hide_the_curve():
    dot = lines(plot.modes(a_run("trained", count=4000)), dots=True)[0]
    every = dot.get_markevery()
    assert isinstance(every, int)
    assert 16 <= 4000 / every <= 32


@pytest.mark.parametrize("wrong", [0, 4, [], [3], [-1]])
def test_a_mode_that_is_not_there_is_named(wrong):
    with pytest.raises(InputError, match=r"^modes: got .*from 0 to 2"):
        plot.modes(a_run("exact: M4"), modes=wrong)


def test_no_problem_at_all_is_named():
    with pytest.raises(InputError, match=r"^trajectories: none has a problem"):
        plot.modes(a_run("recorded", with_problem=False))
    with pytest.raises(InputError, match=r"^trajectories: none has a problem"):
        plot.modes()


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(lambda xs: np.array(sorted(xs))),
    st.floats(0.01, 2),
)
def test_labels_are_moved_as_little_as_a_gap_demands(wanted, gap):
    places = plot._apart(wanted, gap)  # pyright: ignore[reportPrivateUsage]
    assert np.all(np.diff(places) >= gap * (1 - 1e-9))
    before = gap * np.arange(len(wanted))
    best = isotonic_regression(wanted - before).x + before
    np.testing.assert_allclose(places, best, atol=1e-9)


def test_only_drawing_loads_matplotlib():
    code = "import sys, nonmixing.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
