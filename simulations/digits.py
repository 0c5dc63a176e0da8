"""Real images: a network trained on digits follows the predicted modes, step size and all.

The question
------------
Theory says how the singular modes of a two-factor network rise: as sigmoids, one for each mode,
from an aligned start (M4; M5 where the two factors differ in size), and by a matrix Riccati
equation from a balanced start that is aligned with nothing (M8). That is the gradient flow. A
network is trained in steps, and its data are not made up to suit the theory. Does a network that is
trained on images of digits, on the samples themselves, do what the formulas say? And is what it
does beyond them the price of the step, which is known as well?

The images
----------
1797 images of 8×8 pixels. The network predicts the lower half of an image from its upper half,
centred and whitened: Q* is 32×31, and its singular values, 0.515, 0.416, 0.403, 0.310, ..., fall to
0, so that the modes rise one after the other.

Settings, and why
-----------------
All of them follow from the target, by formulas that are in the ledger. None was chosen by looking
at a run.

- Learning rate η = 0.1 / s_1. Descent is stable for η < 1 / s_1 (D4); a tenth of that keeps the
  next order of the expansion in η s_1, which nothing here predicts, at a few per cent, well within
  the band of 20 %. And it leaves an effect of the step that is far above what integration loses.
- Start c_0 = 0.001 in every mode. Modes that start alike below s/4.59 rise in order of size (M6);
  the tenth has s = 0.104 and so would need 0.023. This is a hundred times below s: there is a
  plateau to see.
- Unaligned starts have Gaussian entries of standard deviation √(2 c_0 / r), r the width: the part
  of a mode that grows, (p_iᵀU + r_iᵀV)/2, then has a squared length of c_0 on average.
- Imbalance λ = the smallest of the singular values judged, so that it matters to that mode.
- Width 16, or 10 where there are ten modes: more columns than modes that are judged or as many,
  and half the work that a column for every mode would be.
- Time until a sigmoid that starts at c_0 has risen to 95 % in the slowest mode judged:
  (ln(s/c_0 − 1) + ln 19) / (2 s), from M6.
- The band (D5): the gradient flow is f, the flow of L + (η/4)‖∇L‖² is g. What the network does
  beyond f must be g − f, by a factor of 1 ± 0.2 in each mode, and what is then left must fall by
  4 ± 20 % when η is halved, while g − f itself falls by 2 ± 20 %.

What must fail
--------------
The same numbers for a network that stands still, for the same curves on a clock that runs 20 % slow
or 25 % fast, and for a network that is trained on the same images with the lower halves dealt out
among them at random.

The hard task
-------------
Ten classes from all pixels, second moments not centred: ten singular values between 0.315 and
0.186. From a start that is aligned with nothing, no mode has the time to rise alone. So the picture
of independent modes, each a sigmoid (M4) from its own c_0 = p_iᵀ Q(0) r_i, must fail there by the
same measure by which M8 holds. It is also given the c_0 that suits it best in theory, the part of
each mode that grows, |p_iᵀU + r_iᵀV|²/4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from nonmixing import plot
from nonmixing.compare import StepSizeBand, step_size_band
from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.integrate import integrate
from nonmixing.dynamics.trajectory import Trajectory
from nonmixing.errors import InputError
from nonmixing.networks.tasks import Task, digits_classes, digits_halves
from nonmixing.networks.train import train
from nonmixing.problem import Array, BilinearProblem, Factors, aligned, balanced, gaussian
from nonmixing.saving import atomically

SEED = 2026
JUDGED = 10
"""Modes that are judged; the quick run judges six, and so needs half the time."""
START = 1e-3
EVERY = 2
"""A state is recorded after so many steps: some ten for the steepest mode's rise."""
WIDTH = 16
SMALLNESS = 0.1
"""The learning rate, in units of the largest stable one."""

Watch = Callable[[str, int, int], None]
"""Told what comes now, how many runs are done, and of how many."""


@dataclass(frozen=True)
class Setting:
    """What a task is run with; every number follows from the target.

    Attributes:
        rate: Learning rate η.
        steps: Number of steps at that rate.
        judged: Number of leading modes that are judged.
        width: Number of columns r.
        deviation: Standard deviation of the entries of unaligned starts.
        imbalance: λ of the imbalanced start.
    """

    rate: float
    steps: int
    judged: int
    width: int
    deviation: float
    imbalance: float


def setting(problem: BilinearProblem, judged: int) -> Setting:
    """The setting for a target, by the reasons above."""
    s = problem.svd.s
    slowest = float(s[judged - 1])
    span = (np.log(slowest / START - 1) + np.log(19)) / (2 * slowest)
    rate = SMALLNESS / float(s[0])
    width = min(WIDTH, len(s))
    return Setting(
        rate=rate,
        steps=EVERY * int(np.ceil(span / rate / EVERY)),
        judged=judged,
        width=width,
        deviation=float(np.sqrt(2 * START / width)),
        imbalance=slowest,
    )


Start = Literal["aligned", "imbalanced", "balanced", "gaussian"]


def start(problem: BilinearProblem, kind: Start, with_: Setting) -> Factors:
    """The starts, for which M4, M5, M8 and no closed form hold, in this order."""
    if kind == "aligned":
        return aligned(problem, np.sqrt(START), width=with_.width)
    if kind == "imbalanced":
        # a b = c_0 and a² − b² = λ.
        total = np.hypot(with_.imbalance, 2 * START)
        a, b = np.sqrt((total + with_.imbalance) / 2), np.sqrt((total - with_.imbalance) / 2)
        return aligned(problem, a, b, width=with_.width)
    make = balanced if kind == "balanced" else gaussian
    return make(problem, scale=with_.deviation, width=with_.width, seed=SEED)


@dataclass(frozen=True, eq=False)
class Trained:
    """Descent on the samples with η, and with η/2 at the same times."""

    whole: Trajectory
    half: Trajectory


def trained(problem: BilinearProblem, begin: Factors, with_: Setting) -> Trained:
    """Two runs of full-batch descent."""
    whole = train(problem, begin, rate=with_.rate, steps=with_.steps, every=EVERY)
    half = train(problem, begin, rate=with_.rate / 2, steps=2 * with_.steps, every=2 * EVERY)
    return Trained(whole, half)


@dataclass(frozen=True, eq=False)
class Predicted:
    """What theory says of a start.

    Attributes:
        flow: The gradient flow: exact where a closed form holds, else integrated.
        modified: The flow of L + (η/4)‖∇L‖².
        modified_half: The same for η/2.
        floor: By how much two ways to compute the flow differ, largest over time, for each mode:
            exact and integrated, or integrated with tolerances a hundred times coarser.
    """

    flow: Trajectory
    modified: Trajectory
    modified_half: Trajectory
    floor: Array


def predicted(
    problem: BilinearProblem, begin: Factors, times: Array, rate: float, *, closed_form: bool = True
) -> Predicted:
    """The flow and the two modified flows from a start."""
    flow = integrate(problem, begin, times)
    if closed_form:
        other, flow = flow, solve(problem, begin, times)
    else:
        other = integrate(problem, begin, times, rtol=1e-7, atol=1e-10)
    return Predicted(
        flow=flow,
        modified=integrate(problem, begin, times, rate=rate),
        modified_half=integrate(problem, begin, times, rate=rate / 2),
        floor=np.abs(flow.modes() - other.modes()).max(axis=0),
    )


def judge(measured: Trained, theory: Predicted, judged: int) -> StepSizeBand:
    """The band, in the modes of the target that theory speaks of."""
    posed = theory.flow.problem
    return step_size_band(
        replace(measured.whole, problem=posed),
        theory.flow,
        theory.modified,
        replace(measured.half, problem=posed),
        theory.modified_half,
        floor=theory.floor[:judged],
        modes=judged,
    )


def shuffled(problem: BilinearProblem) -> BilinearProblem:
    """The same inputs and the same outputs, dealt out at random: their relation is gone."""
    if problem.samples is None:
        raise InputError(
            "problem: has no samples to shuffle; pass one from BilinearProblem.from_samples"
        )
    order = np.random.default_rng(SEED).permutation(len(problem.samples))
    return BilinearProblem.from_samples(problem.samples.inputs, problem.samples.outputs[order])


def independent(problem: BilinearProblem, begin: Factors, *, growing: bool, width: int) -> Factors:
    """The aligned start that the picture of independent modes puts in the place of a start.

    Args:
        problem: The problem.
        begin: The start, U (m, r) and V (n, r).
        growing: Take the part of each mode that grows, |p_iᵀU + r_iᵀV|²/4, as its c_0; else its own
            strength p_iᵀ U Vᵀ r_i, which may be negative (then a = −b, and M4 has the mode vanish).
        width: Number of columns.
    """
    left, right = problem.svd.P.T @ begin.U, problem.svd.R.T @ begin.V
    strength = np.sum((left + right) ** 2, axis=1) / 4 if growing else np.sum(left * right, axis=1)
    size = np.sqrt(np.abs(strength))
    return aligned(problem, size, np.sign(strength) * size, width=width)


# The run of the first task. -------------------------------------------------------------------


def halves(quick: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """The lower half of an image from its upper half, from four starts."""
    task = digits_halves()
    problem = task.problem
    with_ = setting(problem, 6 if quick else JUDGED)
    kinds: tuple[Start, ...] = ("aligned", "imbalanced", "balanced", "gaussian")
    cases: dict[str, Any] = {}
    for kind in kinds:
        tell(f"halves, {kind} start")
        begin = start(problem, kind, with_)
        measured = trained(problem, begin, with_)
        theory = predicted(
            problem, begin, measured.whole.times, with_.rate, closed_form=kind != "gaussian"
        )
        cases[kind] = _case(measured, theory, with_.judged)
        if kind == "aligned":
            tell("halves, shuffled")
            null = trained(shuffled(problem), begin, with_)
            cases[kind]["shuffled"] = _band(judge(null, theory, with_.judged))
    return {"task": _task(task), "setting": asdict(with_), "cases": cases}


# The run of the second task. ------------------------------------------------------------------


def classes(quick: bool, tell: Callable[[str], None]) -> dict[str, Any]:
    """Ten classes from all pixels, from starts that are aligned with nothing."""
    task = digits_classes()
    problem = task.problem
    with_ = setting(problem, JUDGED)
    kinds: tuple[Start, ...] = ("balanced",) if quick else ("balanced", "gaussian")
    cases: dict[str, Any] = {}
    for kind in kinds:
        tell(f"classes, {kind} start")
        begin = start(problem, kind, with_)
        measured = trained(problem, begin, with_)
        times = measured.whole.times
        theory = predicted(problem, begin, times, with_.rate, closed_form=kind != "gaussian")
        cases[kind] = _case(measured, theory, with_.judged)
        for name, growing in (("independent", False), ("independent-growing", True)):
            alone = independent(problem, begin, growing=growing, width=with_.width)
            picture = predicted(problem, alone, times, with_.rate)
            cases[kind][name] = _case(measured, picture, with_.judged)
    return {"task": _task(task), "setting": asdict(with_), "cases": cases}


# The answer. ----------------------------------------------------------------------------------


def main(
    quick: bool = False, out: Path = Path("out"), progress: Watch | None = None
) -> dict[str, Any]:
    """Run both tasks, write `digits.json`, and draw `modes.png` from it.

    Args:
        quick: Judge six modes of the first task, and one start of the second.
        out: The folder to write to; made if it is not there.
        progress: Told what comes now, how many runs are done, and of how many.

    Returns:
        What was written.

    Raises:
        MissingExtra: torch or scikit-learn is not installed.
    """
    results = run(quick, progress)
    out.mkdir(parents=True, exist_ok=True)
    saved = out / "digits.json"
    text = json.dumps(results, indent=None, ensure_ascii=False, allow_nan=False)
    atomically(saved, lambda beside: beside.write_text(text + "\n", encoding="utf-8"))
    draw(json.loads(saved.read_text(encoding="utf-8")), out / "modes.png")
    return results


def run(quick: bool = False, progress: Watch | None = None) -> dict[str, Any]:
    """Run both tasks; the results are JSON's types."""
    begin, done, total = perf_counter(), 0, 6 if quick else 7

    def tell(what: str) -> None:
        nonlocal done
        if progress is not None:
            progress(what, done, total)
        done += 1

    results: dict[str, Any] = {"schema": 1, "quick": quick, "seed": SEED}
    results["halves"] = halves(quick, tell)
    results["classes"] = classes(quick, tell)
    results["answer"] = answer(results)
    results["seconds"] = round(perf_counter() - begin, 2)
    return results


def draw(results: Mapping[str, Any], picture: Path) -> None:
    """Draw the figure from saved results."""
    figure = plot.digits(results)
    atomically(picture, lambda beside: figure.savefig(beside, format="png", dpi=120))


def answer(results: Mapping[str, Any]) -> str:
    """The answer, in numbers."""
    lines: list[str] = []
    for task in ("halves", "classes"):
        for kind, case in results[task]["cases"].items():
            lines.append(f"{task}, {kind} start, {case['prediction']}: {_sentence(case['band'])}")
            for name in ("shuffled", "independent", "independent-growing"):
                if name in case:
                    other = case[name]
                    lines.append(f"  {name}: {_sentence(other.get('band', other))}")
    return "\n".join(lines)


def _sentence(band: Mapping[str, Any]) -> str:
    ratio, fall = np.asarray(band["ratio"]), np.asarray(band["fall"])
    supported = sum(word == "supported" for word in band["outcomes"])
    return (
        f"{band['verdict']}, {supported} of {len(ratio)} modes in the band; ratio "
        f"{ratio.min():.3g} to {ratio.max():.3g}, fall {fall.min():.3g} to {fall.max():.3g}"
    )


def _case(measured: Trained, theory: Predicted, judged: int) -> dict[str, Any]:
    """One run beside one prediction, as JSON's types."""
    m, f, g = (run.modes()[:, :judged] for run in (measured.whole, theory.flow, theory.modified))
    return {
        "prediction": theory.flow.source,
        "status": measured.whole.status,
        "times": _short(measured.whole.times),
        "measured": _short(m),
        "flow": _short(f),
        "modified": _short(g),
        "distance": _short(np.abs(m - f).max(axis=0)),
        "distance_modified": _short(np.abs(m - g).max(axis=0)),
        "mixing": float(measured.whole.mixing().max()),
        "floor": _short(theory.floor[:judged]),
        "band": _band(judge(measured, theory, judged)),
    }


def _band(band: StepSizeBand) -> dict[str, Any]:
    return {
        "verdict": band.verdict,
        "reason": band.reason,
        "because": band.because,
        "outcomes": list(band.outcomes),
        "ratio": _short(band.ratio),
        "fall": _short(band.fall),
        "effect_fall": _short(band.effect_fall),
        "effect": _short(band.effect),
        "gap": _short(band.gap),
        "gap_half": _short(band.gap_half),
        "null_ratio": {name: _short(value) for name, value in band.null_ratio.items()},
        "null_fall": {name: _short(value) for name, value in band.null_fall.items()},
    }


def _task(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "says": task.says,
        "images": task.images,
        "pixels": task.pixels,
        "support": task.support,
        "outputs": task.outputs,
        "singular_values": _short(task.problem.svd.s),
    }


def _short(array: Array) -> list[Any]:
    """Nested lists with seven digits, which is all that a figure or a reader needs."""
    if array.ndim > 1:
        return [_short(row) for row in array]
    return [float(f"{value:.7g}") for value in array]


if __name__ == "__main__":
    print(main()["answer"])
