"""N1. A network that is trained follows the exact solutions, on real data.

A network with two layers and no nonlinearity is trained by full-batch gradient descent on images of
digits. Its modes, the diagonal of Pᵀ Q R in the singular basis of the target, are held against

- M4 and M5 from aligned starts, balanced and not,
- M8 from a small balanced start that is aligned with nothing,
- the integrated flow from small Gaussian weights, for which there is no closed form,

each to within what its learning rate η explains (D5): in every mode the deviation from the flow
must be 1 ± 0.2 times that of the flow of L + (η/4)‖∇L‖², and what then remains must fall as η².

Two things must fail by the same measure: the same curves from images whose lower halves were dealt
out at random; and, on a target with nearly equal singular values and a start that is not aligned,
the picture of modes that evolve alone.

Settings, with their reasons, and the run itself are in `simulations/digits.py`.

Source: Saxe, McClelland, Ganguli 2014 for the curves; Barrett and Dherin 2021 for the step size.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nonmixing.claim import Claim, Experiment
from nonmixing.compare import BAND
from nonmixing.ledger import folder, load_script
from nonmixing.verdict import Verdict

digits = load_script(folder("simulations") / "digits.py")


@cache
def results(quick: bool) -> Mapping[str, Any]:
    """The experiment, run once for all of its verdicts."""
    return digits.run(quick)


def verdict(quick: bool, task: str, kind: str, against: str = "") -> Verdict:
    """The verdict of one start, or of what stands beside it under another name."""
    case = results(quick)[task]["cases"][kind]
    whole = case if not against else case[against]
    band = whole.get("band", whole)
    return Verdict(
        verdict=band["verdict"],
        evidence="training",
        scope="(measured − flow) / (modified flow − flow), mode by mode"
        + (f" ({band['reason']})" if band["reason"] else ""),
        measured=tuple(band["ratio"]),
        predicted=1.0,
        tolerance=BAND,
        because=band["because"],
        nulls={name: tuple(values) for name, values in band["null_ratio"].items()},
        seed=results(quick)["seed"],
        details={
            "prediction": whole.get("prediction", case["prediction"]),
            "fall": band["fall"],
            "effect fall": band["effect_fall"],
            "null fall": band["null_fall"],
            "outcomes": band["outcomes"],
            "distance": whole.get("distance", []),
            "mixing": case["mixing"],
            **({"run": results(quick)} if (kind, against) == ("aligned", "") else {}),
        },
    )


def experiment(
    name: str, task: str, kind: str, against: str = "", *, fails: bool = False
) -> Experiment:
    """A training experiment of the ledger."""

    def run(quick: bool) -> Verdict:
        return verdict(quick, task, kind, against)

    return Experiment(run, "unsupported" if fails else "supported", name=name)


def figure(entry: Mapping[str, Any], out: Path) -> Path:
    """Predicted curves and measured dots, drawn from the curves saved with the first verdict."""
    picture = out / "modes.png"
    digits.draw(entry["training"][0]["details"]["run"], picture)
    return picture


claim = Claim(
    id="N1",
    title="a trained two-factor network follows M4, M5, M8 on real data, to second order in η",
    source="Saxe, McClelland, Ganguli 2014; Barrett and Dherin 2021",
    training=(
        experiment("halves, aligned (M4)", "halves", "aligned"),
        experiment("halves, shuffled", "halves", "aligned", "shuffled", fails=True),
        experiment("halves, balanced (M8)", "halves", "balanced"),
        experiment("halves, imbalanced (M5)", "halves", "imbalanced"),
        experiment("halves, Gaussian", "halves", "gaussian"),
        experiment("classes, balanced (M8)", "classes", "balanced"),
        experiment("classes, independent modes", "classes", "balanced", "independent", fails=True),
    ),
    figure=figure,
)
