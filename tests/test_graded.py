"""The basis of a graded matrix's range: its bound, its range, and pivots that are tried again."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from nonmixing.dynamics import graded as module
from nonmixing.dynamics.exact import solve
from nonmixing.dynamics.graded import TOLERATED, Graded
from nonmixing.problem import Array, BilinearProblem, balanced


def example(rows: int, width: int, seed: int = 0) -> tuple[Graded, Array, Array]:
    generator = np.random.default_rng(seed)
    rates = np.sort(generator.uniform(0.1, 1.0, rows))[::-1]
    found = Graded(rates, rates, rates, generator.standard_normal((rows, width)))
    return found, np.ones(rows), np.eye(width) + 0.1 * generator.standard_normal((width, width))


def projector(columns: Array) -> Array:
    q = np.linalg.qr(columns)[0]
    return q @ q.T


@pytest.mark.parametrize("width", [1, 3, 6])
@pytest.mark.parametrize("rows", [1, 4, 30])
def test_the_basis_is_bounded_and_spans_the_range(rows: int, width: int) -> None:
    graded, weights, core = example(rows, width)
    for time in [0.1, 0.2, 1.0, 1.5, 5.0, 6.0]:
        basis = graded.basis(weights, core, time)
        assert np.abs(basis).max() <= TOLERATED
        plain = np.vstack([graded.rows * np.exp(graded.rates * time)[:, None], core])
        # The condition of what is multiplied out: e^6 at the most.
        np.testing.assert_allclose(projector(basis), projector(plain), atol=1e-12)


def test_the_basis_spans_the_range_where_no_float_holds_the_sizes() -> None:
    """Projectors against mpmath with 2,000 digits, at sizes up to e^1000, and on to ∞."""
    graded, weights, core = example(5, 3)
    for time in [300.0, 1000.0]:
        basis = graded.basis(weights, core, time)
        assert np.isfinite(basis).all()
        with mp.workdps(2000):
            plain = mp.matrix(np.vstack([graded.rows, core]).tolist())
            for i, rate in enumerate(graded.rates):
                plain[i, :] *= mp.exp(mp.mpf(float(rate)) * mp.mpf(time))
            q = mp.qr(plain, mode="skinny")[0]
            expected = np.array((q * q.T).tolist(), dtype=np.float64)
        np.testing.assert_allclose(projector(basis), expected, atol=1e-13)
    limit = graded.basis(weights, core, np.inf)
    np.testing.assert_allclose(projector(limit), np.diag([1.0] * 3 + [0.0] * 5), atol=1e-13)


def test_pivots_are_tried_again_and_chosen_anew_where_they_no_longer_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At most as many choices as times, fewer on a fine grid; the state does not depend on it."""
    generator = np.random.default_rng(3)
    problem = BilinearProblem(generator.standard_normal((30, 20)) / 5)
    start = balanced(problem, scale=1e-3, width=4, seed=1)
    times = np.linspace(0.5, 40, 80)
    chosen = 0
    right = Graded._eliminated  # pyright: ignore[reportPrivateUsage]

    def counted(self: Graded, stack: Array, time: float) -> tuple[Array, list[int]]:
        nonlocal chosen
        chosen += 1
        return right(self, stack, time)

    monkeypatch.setattr(Graded, "_eliminated", counted)
    together = solve(problem, start, times)
    assert 2 <= chosen <= 20
    for k in range(0, len(times), 7):
        alone = solve(problem, start, [times[k]])
        size = np.abs(alone.operator(0)).max()
        # A factor TOLERATED of what complete pivoting loses, a few units of rounding.
        assert np.abs(together.operator(k) - alone.operator(0)).max() <= 1e-13 * size


def test_pivots_kept_for_ever_lose_the_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: without the bound on the entries the basis is no basis later on."""
    problem = BilinearProblem(np.diag([3.0, 2.0, 1.0, 0.5, 0.2]))
    start = balanced(problem, scale=1e-2, width=2, seed=1)
    expected = solve(problem, start, [20.0]).operator(0)
    np.testing.assert_allclose(solve(problem, start, [0.01, 20.0]).operator(1), expected, 0, 1e-13)
    monkeypatch.setattr(module, "TOLERATED", np.inf)
    lost = solve(problem, start, [0.01, 20.0]).operator(1)
    assert not np.abs(lost - expected).max() <= 1e-9
