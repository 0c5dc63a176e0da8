"""Targets as arrays, as factors and as operators: one target, one problem; what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from nonmixing.errors import InputError, ShapeError
from nonmixing.problem import BilinearProblem, balanced, gaussian
from nonmixing.target import TargetSVD

RNG = np.random.default_rng(0)
P, R = (np.linalg.qr(RNG.standard_normal((size, 3)))[0] for size in (9, 7))
S = np.array([2.0, 1.0, 1e-6])
DENSE = (P * S) @ R.T

NOT_ORTHONORMAL = "its columns are not orthonormal"


@pytest.mark.parametrize(
    "problem",
    [
        BilinearProblem((P, S, R)),
        BilinearProblem((P[:, ::-1], S[::-1], -R[:, ::-1])),
        BilinearProblem(TargetSVD(P, S, R)),
        BilinearProblem(aslinearoperator(DENSE), rank=3),
        BilinearProblem(sparse.csr_array(DENSE), rank=3),
        BilinearProblem(DENSE, rank=3),
    ],
    ids=["factors", "unsorted", "svd", "operator", "sparse", "array"],
)
def test_all_ways_to_give_a_target_are_one_problem(
    problem: BilinearProblem, request: pytest.FixtureRequest
) -> None:
    """To rounding of the largest singular value; signs are those of the array's SVD."""
    whole = BilinearProblem(DENSE)
    sign = -1 if request.node.callspec.id == "unsorted" else 1
    assert problem.factored
    assert not whole.factored
    assert problem.shape == whole.shape == (9, 7)
    assert problem.svd.rank == whole.svd.rank == 3
    np.testing.assert_allclose(problem.svd.s, S, atol=1e-14)
    np.testing.assert_allclose(problem.svd.P[:, :2], whole.svd.P[:, :2], atol=1e-13)
    np.testing.assert_allclose(problem.svd.R[:, :2], sign * whole.svd.R[:, :2], atol=1e-13)
    np.testing.assert_allclose(problem.svd.R.T @ problem.svd.R, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(problem.target, sign * DENSE, atol=1e-14)
    assert problem.target is problem.target
    with pytest.raises(ValueError, match="read-only"):
        problem.target[0, 0] = 1


def test_three_rows_are_not_factors() -> None:
    rows = ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    np.testing.assert_array_equal(BilinearProblem(rows).target, rows)


def test_a_problem_keeps_what_it_was_given() -> None:
    problem = BilinearProblem((P, S, R), decay=0.1, rates=(1.0, 2.0))
    for other in (pickle.loads(pickle.dumps(problem)), replace(problem, decay=0.2)):
        np.testing.assert_allclose(other.target, DENSE, atol=1e-14)
        assert other.rates == (1.0, 2.0)
    assert replace(problem, decay=0.2).decay == 0.2
    with pytest.raises(AttributeError):
        problem.target = DENSE  # pyright: ignore[reportAttributeAccessIssue]


def test_starts_are_those_of_the_array() -> None:
    """The singular vectors come from elsewhere, and balanced starts still are the same."""
    factored, whole = BilinearProblem((P, S, R)), BilinearProblem(DENSE)
    for make in (gaussian, balanced):
        one, other = (make(p, scale=0.1, width=4, seed=2) for p in (factored, whole))
        np.testing.assert_array_equal(one.U, other.U)


def test_an_operator_is_multiplied_with_a_few_columns_only() -> None:
    seen: list[int] = []

    def product(matrix: np.ndarray) -> Any:
        def times(columns: np.ndarray) -> np.ndarray:
            seen.append(1 if columns.ndim == 1 else columns.shape[1])
            return matrix @ columns

        return times

    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((300, 5)), rng.standard_normal((200, 5))
    operator = LinearOperator(  # pyright: ignore[reportCallIssue]
        (300, 200),
        matvec=product(left @ right.T),
        matmat=product(left @ right.T),
        rmatvec=product(right @ left.T),
        rmatmat=product(right @ left.T),
        dtype=np.float64,
    )
    problem = BilinearProblem(operator, rank=5)
    np.testing.assert_allclose(problem.target, left @ right.T, atol=1e-10)
    assert sum(seen) <= 2 * 15


@pytest.mark.parametrize(
    ("target", "settings", "error", "words"),
    [
        ((P, S, R[:, :2]), {}, ShapeError, "^target: P, s and R have shapes"),
        ((P, S[:2], R), {}, ShapeError, "^target: P, s and R have shapes"),
        ((2 * P, S, R), {}, InputError, f"^target: P: {NOT_ORTHONORMAL}"),
        ((P, S, R + 0.1), {}, InputError, f"^target: R: {NOT_ORTHONORMAL}"),
        ((P, -S, R), {}, InputError, "^target: s: -2 is negative"),
        ((P, S * np.nan, R), {}, InputError, r"^target: s: entry \(0,\) is nan"),
        ((P * 1j, S, R), {}, InputError, "^target: P: real numbers are expected"),
        ((P, S, R * np.inf), {}, InputError, "^target: R: entry"),
        ((P[:, :0], S[:0], R[:, :0]), {}, InputError, "^target: P: empty"),
        (DENSE * 1j, {}, InputError, "^target: real numbers are expected"),
        (DENSE[:0], {}, InputError, "^target: empty"),
        (aslinearoperator(DENSE), {}, InputError, "^rank: missing"),
        (sparse.csr_array(DENSE), {}, InputError, "^rank: missing, and the target is a csr_array"),
        (aslinearoperator(DENSE), {"rank": 0}, InputError, "^rank: got 0"),
        (aslinearoperator(DENSE), {"rank": 2.5}, InputError, "^rank: got 2.5"),
        (aslinearoperator(DENSE), {"rank": 8}, InputError, "^rank: got 8; at most 7"),
        (aslinearoperator(DENSE), {"rank": 1}, InputError, "^rank: got 1, but .* next .* is at"),
        (aslinearoperator(DENSE * 1j), {"rank": 3}, InputError, "^target: the operator is complex"),
        (aslinearoperator(DENSE * np.nan), {"rank": 3}, InputError, "^target: entry"),
        ("target", {"rank": 3}, InputError, "^target: "),
        (
            LinearOperator((9, 7), matvec=lambda x: DENSE @ x),  # pyright: ignore[reportCallIssue]
            {"rank": 3},
            InputError,
            "^target: the operator has no product with its transpose",
        ),
        (DENSE, {"decay": -0.1}, InputError, "^decay: got -0.1"),
        (DENSE, {"decay": np.nan}, InputError, "^decay: got nan; a real number of at least 0"),
        (DENSE, {"decay": np.inf}, InputError, "^decay: got inf"),
        (DENSE, {"decay": 10**400}, InputError, "^decay: got 1000"),
        (DENSE, {"decay": 1j}, InputError, "^decay: got 1j; a real number"),
        (DENSE, {"decay": [0.1, 0.2]}, InputError, "^decay: got a list of two floats; a real"),
        (DENSE, {"decay": np.ones(1)}, InputError, r"^decay: got an array of shape \(1,\); a real"),
        (DENSE, {"decay": "0.1"}, InputError, "^decay: got '0.1'; a real number"),
        (DENSE, {"decay": True}, InputError, "^decay: got True"),
        (DENSE, {"decay": np.array(True)}, InputError, r"^decay: got an array of shape \(\)"),
        (DENSE, {"decay": None}, InputError, "^decay: got None"),
        (DENSE, {"rates": (1.0,)}, InputError, "^rates: got .* one for each of U, V"),
        (DENSE, {"rates": np.ones((2, 1))}, InputError, "^rates: got an array of shape .* U, V"),
        (DENSE, {"rates": 2.0}, InputError, "^rates: got 2.0; .* one for each of U, V"),
        (DENSE, {"rates": "12"}, InputError, "^rates: got '12'"),
        (DENSE, {"rates": (1.0, 0.0)}, InputError, r"^rates\[1\]: got 0.0; a positive finite"),
        (DENSE, {"rates": (1.0, np.inf)}, InputError, r"^rates\[1\]: got inf"),
        (DENSE, {"rates": ("1", "2")}, InputError, r"^rates\[0\]: got '1'"),
        (DENSE, {"rates": (True, 1.0)}, InputError, r"^rates\[0\]: got True"),
        (
            (P, np.diag(S), R),
            {},
            ShapeError,
            r"^target: s: got shape \(3, 3\); a vector of .* \(k,\)",
        ),
        ((P, S[:, None], R), {}, ShapeError, r"^target: s: got shape \(3, 1\)"),
        ((P, S, R.T), {}, ShapeError, r"^target: P, s and R .* R is vh\.T of numpy"),
        (np.linalg.svd(DENSE[:7]), {}, InputError, r"^target: got the result of .*Vh\.T"),
    ],
)
def test_bad_targets_are_refused(
    target: object, settings: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        BilinearProblem(target, **settings)  # pyright: ignore[reportArgumentType]
    assert "\n" not in str(caught.value)
