"""A torch network against a closed form and the second-order flow, at a rate and at half of it."""

from __future__ import annotations

import nonmixing as nm
from nonmixing.compare import step_size_band
from nonmixing.evidence import of_band
from nonmixing.verdict import Verdict


def trained(
    problem: nm.BilinearProblem, start: nm.Factors, *, rate: float, steps: int, form: str, seed: int
) -> Verdict:
    """The test of D5, mode by mode: descent follows the flow that its learning rate modifies."""
    coarse = nm.train(problem, start, rate=rate, steps=steps)
    fine = nm.train(problem, start, rate=rate / 2, steps=2 * steps, every=2)
    result = step_size_band(
        coarse,
        nm.solve(problem, start, coarse.times),
        nm.integrate(problem, start, coarse.times, rate=rate),
        fine,
        nm.integrate(problem, start, fine.times, rate=rate / 2),
    )
    return of_band("training", result, f"modes of a torch network against {form}", seed=seed)
