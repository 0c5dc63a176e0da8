"""The problem, ½‖U Vᵀ − target‖²_F, its singular modes, and ways to start on it.

A bilinear model with the gate absorbed has the operator Q = U Vᵀ, with U of m rows, V of n rows,
and r columns each (the width). On whitened inputs its squared loss is ½‖Q − target‖²_F up to a
constant, where the target is the cross-moment of outputs and inputs.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nonmixing.errors import InputError, ShapeError

Array: TypeAlias = NDArray[np.float64]

WHITENED_TOLERANCE: Final = 1e-8
"""What still counts as whitened, and the relative size below which a direction of the inputs counts
as absent: the square root of float64's resolution. In a second moment, which is a square, anything
smaller is lost in rounding."""


def real_array(name: str, value: ArrayLike, axes: int) -> Array:
    """The value as a read-only float64 array, checked.

    Args:
        name: What the caller calls it; the error message begins with it.
        value: Anything NumPy can read as numbers.
        axes: The number of axes it must have.

    Returns:
        A read-only copy.

    Raises:
        InputError: Not numbers, not real, not finite, or empty.
        ShapeError: Another number of axes.
    """
    try:
        raw = np.asarray(value)
        if np.iscomplexobj(raw):
            raise TypeError("the numbers are complex")
        array = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{name}: real numbers are expected ({reason}); pass a NumPy array of them"
        ) from error
    if array.ndim != axes:
        raise ShapeError(
            f"{name}: got shape {array.shape}, {array.ndim} axes; {axes} are expected, reshape it"
        )
    if array.size == 0:
        raise InputError(f"{name}: empty, shape {array.shape}; every dimension must be at least 1")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{name}: entry {where} is {array[where]}; finite numbers are expected, "
            f"remove or replace the {int(bad.sum())} that are not"
        )
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Samples:
    """Paired samples: `inputs` (N, n) and `outputs` (N, m), one sample a row."""

    inputs: Array
    outputs: Array

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "inputs", real_array("inputs", self.inputs, 2))
        object.__setattr__(self, "outputs", real_array("outputs", self.outputs, 2))
        if len(self.inputs) != len(self.outputs):
            raise ShapeError(
                f"inputs and outputs: got {len(self.inputs)} and {len(self.outputs)} rows; "
                "one row a sample is expected in both"
            )

    def __len__(self) -> int:
        """The number of samples N."""
        return len(self.inputs)


@dataclass(frozen=True, eq=False)
class TargetSVD:
    """The target as P diag(s) Rᵀ: `P` (m, k), `s` (k,) falling, `R` (n, k), with k = min(m, n)."""

    P: Array
    s: Array
    R: Array

    def modes(self, operator: Array) -> Array:
        """The interaction matrix C = Pᵀ Q R (k, k) of an operator Q (m, n)."""
        return self.P.T @ operator @ self.R


@dataclass(frozen=True, eq=False)
class BilinearProblem:
    """The loss ½‖U Vᵀ − target‖²_F.

    Attributes:
        target: Shape (m, n).
        samples: The data behind the target, where there are any: what a network is trained on.
    """

    target: Array
    samples: Samples | None = None

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "target", real_array("target", self.target, 2))
        if self.samples is not None:
            expected = (self.samples.outputs.shape[1], self.samples.inputs.shape[1])
            if self.target.shape != expected:
                raise ShapeError(
                    f"target: got shape {self.target.shape}; {expected} is expected for samples "
                    f"with {expected[0]} outputs and {expected[1]} inputs"
                )

    @classmethod
    def from_samples(
        cls, inputs: ArrayLike, outputs: ArrayLike, *, tolerance: float = WHITENED_TOLERANCE
    ) -> BilinearProblem:
        """The problem that whitened data pose: the target is YᵀX/N.

        The mean squared loss ½ mean‖y − U Vᵀx‖² is then ½‖U Vᵀ − YᵀX/N‖²_F plus a constant.

        Args:
            inputs: X, shape (N, n), with XᵀX/N = I; `whiten` makes it so.
            outputs: Y, shape (N, m).
            tolerance: The largest entry of |XᵀX/N − I| that is taken as whitened.

        Raises:
            InputError: The inputs are not whitened.
            ShapeError: Inputs and outputs do not pair up.
        """
        samples = Samples(real_array("inputs", inputs, 2), real_array("outputs", outputs, 2))
        second_moment = samples.inputs.T @ samples.inputs / len(samples)
        deviation = float(np.abs(second_moment - np.eye(len(second_moment))).max())
        if deviation > tolerance:
            raise InputError(
                "inputs: not whitened, an entry of XᵀX/N differs from the identity by "
                f"{deviation:.3g} (at most {tolerance:.3g} is expected); pass whiten(inputs).data"
            )
        return cls(samples.outputs.T @ samples.inputs / len(samples), samples)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.target.shape[0], self.target.shape[1]

    @cached_property
    def svd(self) -> TargetSVD:
        """The target's thin singular value decomposition, the same on every call.

        In each pair the first entry of p_i that is as large as any in it (to 1e-8) is positive.
        Inside a group of equal singular values the basis is one choice of many.
        """
        left, values, right = np.linalg.svd(self.target, full_matrices=False)
        signs = _leading_signs(left)
        parts = (left * signs, values, right.T * signs)
        for part in parts:
            part.setflags(write=False)
        return TargetSVD(*parts)


@dataclass(frozen=True, eq=False)
class Factors:
    """A state: `U` (m, r) and `V` (n, r)."""

    U: Array
    V: Array

    def __post_init__(self) -> None:
        """Check the arrays and keep read-only copies."""
        object.__setattr__(self, "U", real_array("U", self.U, 2))
        object.__setattr__(self, "V", real_array("V", self.V, 2))
        if self.U.shape[1] != self.V.shape[1]:
            raise ShapeError(
                f"U and V: got shapes {self.U.shape} and {self.V.shape}; "
                "the same number of columns is expected, since the operator is U Vᵀ"
            )

    @property
    def width(self) -> int:
        """The number of columns r."""
        return self.U.shape[1]

    @property
    def operator(self) -> Array:
        """Q = U Vᵀ, shape (m, n)."""
        return self.U @ self.V.T

    @property
    def imbalance(self) -> Array:
        """UᵀU − VᵀV, shape (r, r); the gradient flow conserves it [Du, Hu, Lee 2018]."""
        return self.U.T @ self.U - self.V.T @ self.V

    def check(self, problem: BilinearProblem) -> None:
        """Refuse factors whose rows do not fit the problem's target.

        Raises:
            ShapeError: U must have the target's m rows, V its n.
        """
        rows = (len(self.U), len(self.V))
        if rows != problem.shape:
            raise ShapeError(
                f"start: U and V have {rows[0]} and {rows[1]} rows; {problem.shape[0]} and "
                f"{problem.shape[1]} are expected for a target of shape {problem.shape}"
            )


@dataclass(frozen=True, eq=False)
class Whitening:
    """Whitened inputs and the map that whitens.

    Attributes:
        data: Shape (N, k), with dataᵀ data / N = I.
        transform: Shape (n, k); data = inputs @ transform.
        dimension: k, the dimension of the inputs' support.
    """

    data: Array
    transform: Array
    dimension: int


def whiten(inputs: ArrayLike, tolerance: float = WHITENED_TOLERANCE) -> Whitening:
    """Whiten inputs on their support, by principal components.

    The second moments become the identity; nothing is centred, so centre first if you want to.

    Args:
        inputs: Shape (N, n), one sample a row.
        tolerance: Directions whose singular value is below this fraction of the largest are outside
            the support.

    Raises:
        InputError: The inputs are all zero, or the tolerance is not in (0, 1).
    """
    matrix = real_array("inputs", inputs, 2)
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance: got {tolerance}; a fraction between 0 and 1 is expected")
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    support = values > tolerance * values[0]
    if not support.any():
        raise InputError("inputs: all entries are zero; there is no direction to whiten")
    basis = right[support].T
    signs = _leading_signs(basis)
    root = np.sqrt(len(matrix))
    return Whitening(
        data=root * left[:, support] * signs,
        transform=root * basis * signs / values[support],
        dimension=int(support.sum()),
    )


def aligned(
    problem: BilinearProblem,
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    width: int | None = None,
    seed: int | None = None,
) -> Factors:
    """An aligned start: U = P diag(a) Oᵀ, V = R diag(b) Oᵀ, with the target's singular vectors.

    Each mode is on a direction of its own, and its strength is c_i = a_i b_i [Saxe et al. 2014].

    Args:
        problem: The problem, with k = min(m, n) modes.
        a: Shape (k,), or one number for all modes (for the first `width`, where that is below k).
        b: As `a`; equal to it by default, which makes the start balanced.
        width: r, the number of columns; k by default. Below k at most r modes can be nonzero.
        seed: For a random O (r, ·) with orthonormal columns; those of the identity by default.

    Raises:
        ShapeError: a or b of another length, or more modes than columns.
    """
    k = len(problem.svd.s)
    r = checked_width(k if width is None else width)
    left = _strengths("a", a, k, r)
    right = left if b is None else _strengths("b", b, k, r)
    active = np.arange(k) if r >= k else np.flatnonzero((left != 0) | (right != 0))
    if len(active) > r:
        raise ShapeError(
            f"a and b: {len(active)} modes are nonzero; with width {r} at most {r} can be"
        )
    columns = np.eye(r) if seed is None else orthonormal(r, r, random_stream(seed))
    frame = columns[:, : len(active)].T
    return Factors(
        (problem.svd.P[:, active] * left[active]) @ frame,
        (problem.svd.R[:, active] * right[active]) @ frame,
    )


def gaussian(problem: BilinearProblem, *, scale: float, width: int, seed: int) -> Factors:
    """A start with independent Gaussian entries, of standard deviation `scale`.

    Raises:
        InputError: A scale that is not positive and finite, or a width below 1.
    """
    m, n = problem.shape
    r = checked_width(width)
    if not (np.isfinite(scale) and scale > 0):
        raise InputError(f"scale: got {scale}; a positive finite number is expected")
    generator = random_stream(seed)
    return Factors(
        scale * generator.standard_normal((m, r)), scale * generator.standard_normal((n, r))
    )


def balanced(problem: BilinearProblem, *, scale: float, width: int, seed: int) -> Factors:
    """A random start with UᵀU = VᵀV to rounding, aligned with nothing.

    Its operator U Vᵀ is the one of `gaussian` with the same arguments; the two factors share it
    evenly, U = A diag(√d) Oᵀ and V = B diag(√d) Oᵀ where A diag(d) Bᵀ is that operator's singular
    value decomposition and O a random matrix with orthonormal columns.

    Raises:
        InputError: A scale that is not positive and finite, or a width below 1.
    """
    uneven = gaussian(problem, scale=scale, width=width, seed=seed)
    rank = min(*problem.shape, uneven.width)
    left, values, right = np.linalg.svd(uneven.operator, full_matrices=False)
    # A stream of its own: the columns must not depend on the entries drawn above.
    frame = orthonormal(uneven.width, rank, random_stream(seed, 1))
    half = np.sqrt(values[:rank])
    return Factors((left[:, :rank] * half) @ frame.T, (right[:rank].T * half) @ frame.T)


def orthonormal(rows: int, columns: int, generator: np.random.Generator) -> Array:
    """A random (rows, columns) matrix with orthonormal columns, uniformly distributed."""
    q, r = np.linalg.qr(generator.standard_normal((rows, columns)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


def random_stream(seed: int, *path: int) -> np.random.Generator:
    """The generator of a seed, or one of its independent branches.

    Raises:
        InputError: The seed is not a whole number of at least 0.
    """
    return np.random.default_rng([_whole("seed", seed, 0), *path])


def checked_width(width: int) -> int:
    """The width, if it is a whole number of at least 1.

    Raises:
        InputError: It is not.
    """
    return _whole("width", width, 1)


def _whole(name: str, value: int, least: int) -> int:
    """The value as an int, if it is a whole number of at least `least`."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = least - 1
    if whole < least:
        raise InputError(f"{name}: got {value!r}; a whole number of at least {least} is expected")
    return whole


def _strengths(name: str, value: ArrayLike, k: int, r: int) -> Array:
    """The k mode strengths; a single number fills as many modes as there are columns for."""
    if np.ndim(value) == 0:
        single = float(real_array(name, np.atleast_1d(np.asarray(value)), 1)[0])
        return np.where(np.arange(k) < r, single, 0.0)
    strengths = real_array(name, value, 1)
    if len(strengths) != k:
        raise ShapeError(
            f"{name}: got {len(strengths)} entries; one for each of the {k} modes is expected"
        )
    return strengths


def _leading_signs(columns: Array) -> Array:
    """For each column the sign of its first entry that is as large as any, to 1e-8."""
    sizes = np.abs(columns)
    first = np.argmax(sizes >= (1 - 1e-8) * sizes.max(axis=0), axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
