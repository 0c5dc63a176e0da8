"""Strategies for hypothesis: problems, ways to start on them, and typed random expressions.

What they draw is made of small readable numbers (integers, halves, rotations by Pythagorean
triples), and shrinks to few modes, identity rotations and the smallest numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nonmixing.errors import InputError, MissingExtra, ShapeError
from nonmixing.problem import BilinearProblem, Factors

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
except ImportError as missing:
    raise MissingExtra(
        "nonmixing.testing.strategies needs hypothesis: pip install 'nonmixing[testing]'"
    ) from missing

__all__ = [
    "aligned_starts",
    "balanced_starts",
    "dimensions",
    "expressions",
    "generic_starts",
    "lambda_balanced_starts",
    "matrices",
    "orthogonal",
    "problems",
    "spectra",
    "targets",
    "with_start",
]

Array: TypeAlias = NDArray[np.float64]
Drawn = TypeVar("Drawn")
Start = Callable[[BilinearProblem], SearchStrategy[Factors]]

ROTATIONS = ((0.0, 1.0), (0.6, 0.8), (0.8, 0.6), (5 / 13, 12 / 13), (-0.6, 0.8))
"""Cosines and sines of the rotations that orthogonal matrices are made of."""

LARGEST = 4
"""Largest dimension drawn by default."""

MOST = 6
"""Most halves in a number: numbers are drawn from 1/2, 1, ..., 3, with signs where they may."""

# SymPy's expressions carry no usable types; `Any` stands for one of them below.


@cache
def dimensions(least: int = 1, most: int = LARGEST) -> SearchStrategy[int]:
    """Sizes of a dimension, small ones first."""
    return st.integers(least, most)


@cache
def spectra(count: int, *, distinct: bool = True) -> SearchStrategy[Array]:
    """Falling positive singular values, shape (count,), in halves; shrink to count, ..., 2, 1.

    Args:
        count: how many.
        distinct: whether no two are equal.
    """
    steps = [st.integers(1, 3), *[st.integers(int(distinct), 3)] * (count - 1)]
    # Whole numbers first: the simplest spectrum has no halves.
    return st.tuples(st.sampled_from((1.0, 0.5)), *steps).map(
        lambda drawn: drawn[0] * np.cumsum(np.array(drawn[1:], dtype=np.float64))[::-1]
    )


@st.composite
def orthogonal(draw: DrawFn, rows: int, columns: int | None = None) -> Array:
    """Matrices (rows, columns) with orthonormal columns; shrink to those of the identity.

    Args:
        draw: supplied by hypothesis.
        rows: of them.
        columns: at most `rows`, and as many by default.

    Raises:
        ShapeError: more columns than rows.
    """
    columns = rows if columns is None else columns
    if columns > rows:
        raise ShapeError(f"columns: got {columns}; with {rows} rows at most {rows} are orthonormal")
    matrix = np.eye(rows)
    for i, j, c, s in draw(_turns(rows)):
        above, below = c * matrix[i] - s * matrix[j], s * matrix[i] + c * matrix[j]
        matrix[i], matrix[j] = above, below
    return (matrix * np.array(draw(_signs(rows)))[:, None])[:, :columns]


# Strategies are made once: hypothesis checks each new one, which costs more than a draw.
@cache
def _turns(rows: int) -> SearchStrategy[list[tuple[int, int, float, float]]]:
    pairs = [(i, j) for i in range(rows) for j in range(i + 1, rows)]
    if not pairs:
        return st.just([])
    turns = [(i, j, c, s) for c, s in ROTATIONS for i, j in pairs]
    return st.lists(st.sampled_from(turns), max_size=min(rows, len(pairs)))


@cache
def _signs(count: int) -> SearchStrategy[list[float]]:
    """One draw for all, all positive first."""
    return st.integers(0, 2**count - 1).map(
        lambda bits: [-1.0 if bits >> k & 1 else 1.0 for k in range(count)]
    )


@cache
def _halves(count: int) -> SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(-MOST, MOST)] * count)


@st.composite
def matrices(draw: DrawFn, rows: int, columns: int) -> Array:
    """Matrices (rows, columns) of halves in [-3, 3]; shrink to zero."""
    drawn = draw(_halves(rows * columns))
    return np.array(drawn, dtype=np.float64).reshape(rows, columns) / 2


@st.composite
def targets(
    draw: DrawFn,
    rows: SearchStrategy[int] | int | None = None,
    columns: SearchStrategy[int] | int | None = None,
    *,
    spectrum: SearchStrategy[Array] | Sequence[float] | None = None,
) -> Array:
    """Targets (m, n) with chosen singular values; shrink to a diagonal matrix.

    Args:
        draw: supplied by hypothesis.
        rows: m, or a strategy for it.
        columns: n, or a strategy for it.
        spectrum: min(m, n) singular values, or a strategy for them; `spectra` by default. Fewer are
            filled up with zeros, and make a target of low rank.

    Raises:
        ShapeError: more singular values than min(m, n).
    """
    m, n = _drawn(draw, rows), _drawn(draw, columns)
    k = min(m, n)
    given = spectra(k) if spectrum is None else spectrum
    values = np.asarray(draw(given) if isinstance(given, SearchStrategy) else given, np.float64)
    if values.ndim != 1 or len(values) > k:
        raise ShapeError(
            f"spectrum: got shape {values.shape}; at most {k} singular values are expected for a "
            f"target of shape ({m}, {n})"
        )
    left, right = draw(orthogonal(m)), draw(orthogonal(n))
    r = len(values)
    return (left[:, :r] * values) @ right[:, :r].T


def problems(
    rows: SearchStrategy[int] | int | None = None,
    columns: SearchStrategy[int] | int | None = None,
    *,
    spectrum: SearchStrategy[Array] | Sequence[float] | None = None,
) -> SearchStrategy[BilinearProblem]:
    """Problems on `targets` with the same arguments."""
    return targets(rows, columns, spectrum=spectrum).map(BilinearProblem)


# --- ways to start --------------------------------------------------------------------------------


@st.composite
def aligned_starts(
    draw: DrawFn, problem: BilinearProblem, *, equal: bool = True, width: int | None = None
) -> Factors:
    """Starts on the target's singular vectors: U = P diag(a) Oᵀ, V = R diag(b) Oᵀ.

    Args:
        draw: supplied by hypothesis.
        problem: with k = min(m, n) modes.
        equal: whether a = b, so that the start is balanced as well.
        width: r; k by default. The first min(k, r) modes are on.
    """
    svd = problem.svd
    r = len(svd.s) if width is None else _positive("width", width)
    active = min(r, len(svd.s))
    a = draw(_positives(active))
    b = a if equal else draw(_positives(active))
    frame = draw(orthogonal(r, active)).T
    return Factors((svd.P[:, :active] * a) @ frame, (svd.R[:, :active] * b) @ frame)


@st.composite
def balanced_starts(
    draw: DrawFn, problem: BilinearProblem, *, width: SearchStrategy[int] | int | None = None
) -> Factors:
    """Starts with UᵀU = VᵀV to rounding, U = A diag(d) Oᵀ, V = B diag(d) Oᵀ, aligned with nothing.

    Args:
        draw: supplied by hypothesis.
        problem: the problem.
        width: r, or a strategy for it. The factors have rank min(m, n, r) at most.
    """
    (m, n), r = problem.shape, _drawn(draw, width)
    rank = min(m, n, r)
    d = draw(_positives(rank))
    left, right = draw(orthogonal(m, rank)), draw(orthogonal(n, rank))
    frame = draw(orthogonal(r, rank)).T
    return Factors((left * d) @ frame, (right * d) @ frame)


@st.composite
def lambda_balanced_starts(
    draw: DrawFn,
    problem: BilinearProblem,
    *,
    imbalance: SearchStrategy[float] | float | None = None,
    width: int | None = None,
) -> Factors:
    """Starts with UᵀU − VᵀV = λ I to rounding [Dominé et al. 2024, whose W₂ᵀW₂ − W₁W₁ᵀ it is].

    Args:
        draw: supplied by hypothesis.
        problem: the problem.
        imbalance: λ, or a strategy for it; 1, -1, 2, ... by default.
        width: r; by default one that λ allows.

    Raises:
        ShapeError: λ > 0 needs r <= m, λ < 0 needs r <= n, since λ I has rank r.
    """
    m, n = problem.shape
    given = st.sampled_from((1.0, -1.0, 2.0, -2.0, 0.5)) if imbalance is None else imbalance
    lam = float(draw(given) if isinstance(given, SearchStrategy) else given)
    most = m if lam > 0 else n if lam < 0 else min(m, n)
    r = draw(st.integers(1, most)) if width is None else _positive("width", width)
    if r > most:
        raise ShapeError(
            f"width: got {r}; with λ = {lam:g} and a target of shape ({m}, {n}) it is at most "
            f"{most}, since UᵀU − VᵀV = λ I has rank {r}"
        )
    small = min(m, n, r)  # so many columns of the smaller factor are independent
    weaker = np.zeros(r)
    weaker[:small] = draw(_positives(small, least=0))
    stronger = np.sqrt(weaker**2 + abs(lam))
    frame = draw(orthogonal(r)).T
    u, v = (stronger, weaker) if lam >= 0 else (weaker, stronger)
    left, right = (_frame(draw, size, r) for size in (m, n))
    return Factors((left * u) @ frame, (right * v) @ frame)


@st.composite
def generic_starts(
    draw: DrawFn, problem: BilinearProblem, *, width: SearchStrategy[int] | int | None = None
) -> Factors:
    """Starts with entries in halves, neither balanced nor aligned in general; shrink to zero."""
    (m, n), r = problem.shape, _drawn(draw, width)
    return Factors(draw(matrices(m, r)), draw(matrices(n, r)))


def with_start(
    starts: Start, over: SearchStrategy[BilinearProblem] | None = None
) -> SearchStrategy[tuple[BilinearProblem, Factors]]:
    """Pairs of a problem and a start on it.

    Args:
        starts: one of the strategies above, `balanced_starts` for one.
        over: the problems; `problems()` by default.
    """
    chosen = problems() if over is None else over
    return chosen.flatmap(lambda problem: st.tuples(st.just(problem), starts(problem)))


def _frame(draw: DrawFn, rows: int, columns: int) -> Array:
    """Orthonormal columns, as many as there can be, then zeros."""
    most = min(rows, columns)
    return np.hstack([draw(orthogonal(rows, most)), np.zeros((rows, columns - most))])


@cache
def _positives(count: int, least: int = 1) -> SearchStrategy[Array]:
    """Numbers in halves, positive ones unless told otherwise; whole ones first."""
    entries = st.sampled_from([*range(2, MOST + 1, 2), *range(1, MOST, 2)])
    entries = st.just(0) | entries if least == 0 else entries
    return st.tuples(*[entries] * count).map(lambda drawn: np.array(drawn, dtype=np.float64) / 2)


def _drawn(draw: DrawFn, size: SearchStrategy[int] | int | None) -> int:
    if size is None:
        return draw(dimensions())
    return draw(size) if isinstance(size, SearchStrategy) else _positive("size", size)


def _positive(name: str, size: int) -> int:
    if size < 1:
        raise InputError(f"{name}: got {size}; a whole number of at least 1 is expected")
    return size


# --- expressions ----------------------------------------------------------------------------------


def expressions(
    symbols: Sequence[Any], shape: tuple[Any, Any] | None = None, *, most: int = 4
) -> SearchStrategy[Any]:
    """Typed random SymPy expressions in some matrix symbols; shrink to one, or a short product.

    They are made of sums, differences, products, transposes, elementwise products and small
    factors; scalars of traces and squared norms.

    Args:
        symbols: SymPy matrix symbols.
        shape: rows and columns, as SymPy has them; a scalar by default.
        most: about how many symbols occur at most.

    Raises:
        InputError: no symbols, or no product of them and their transposes has this shape.
    """
    given = list(symbols)
    if not given:
        raise InputError("symbols: none; pass at least one SymPy matrix symbol")
    words = _Words(given)
    if shape is None:
        return _scalar(words, most)
    if words.shortest(*shape) is None:
        names = ", ".join(f"{symbol.name} {tuple(symbol.shape)}" for symbol in given)
        raise InputError(
            f"shape: no product of {names} and their transposes is {shape[0]} x {shape[1]}"
        )
    return _matrix(words, shape[0], shape[1], most)


class _Words:
    """The symbols that expressions are made of, and the shapes that their products can have."""

    def __init__(self, symbols: Sequence[Any]) -> None:
        self.letters: list[Any] = [*symbols, *(symbol.T for symbol in symbols)]
        self.dims: list[Any] = list(dict.fromkeys(x for symbol in symbols for x in symbol.shape))
        self._known = {rows: self._from(rows) for rows in self.dims}

    def shortest(self, rows: Any, cols: Any) -> Any:
        """The shortest product of symbols and transposes of that shape; None if there is none."""
        return self._known.get(rows, {}).get(cols)

    @cache  # noqa: B019 - an object of this class lives as long as its strategy
    def fitting(self, rows: Any, cols: Any) -> SearchStrategy[Any]:
        """The symbols and transposes of that shape; the shortest product if there are none."""
        fitting = [letter for letter in self.letters if tuple(letter.shape) == (rows, cols)]
        return st.sampled_from(fitting or [self.shortest(rows, cols)])

    @cache  # noqa: B019
    def between(self, rows: Any, cols: Any) -> SearchStrategy[Any]:
        """The inner dimensions that a product of two may have."""
        known = self._known
        return st.sampled_from(
            [dim for dim in self.dims if dim in known[rows] and cols in known[dim]]
        )

    def _from(self, rows: Any) -> dict[Any, Any]:
        """The shortest product with so many rows for each number of columns, breadth first."""
        reached: dict[Any, Any] = {}
        frontier: list[tuple[Any, Any]] = [(rows, None)]
        while frontier:
            found: list[tuple[Any, Any]] = []
            for dim, so_far in frontier:
                for letter in self.letters:
                    if letter.shape[0] == dim and letter.shape[1] not in reached:
                        reached[letter.shape[1]] = letter if so_far is None else so_far * letter
                        found.append((letter.shape[1], reached[letter.shape[1]]))
            frontier = found
        return reached


_KINDS = st.sampled_from(("symbol", "product", "sum", "difference", "T", "scaled", "elementwise"))
_FACTORS = st.sampled_from(("2", "-1", "3", "1/2"))


@st.composite
def _matrix(draw: DrawFn, words: _Words, rows: Any, cols: Any, budget: int) -> Any:
    """An expression of that shape with about that many symbols; simple ones first."""
    from sympy import Rational

    from nonmixing.algebra.sympy_door import mx

    if budget <= 1:
        return draw(words.fitting(rows, cols))
    kind = draw(_KINDS)
    half = budget // 2
    match kind:
        case "symbol":
            return draw(words.fitting(rows, cols))
        case "product":
            inner = draw(words.between(rows, cols))
            left = draw(_matrix(words, rows, inner, half))
            return left * draw(_matrix(words, inner, cols, budget - half))
        case "T":
            return draw(_matrix(words, cols, rows, budget - 1)).T
        case "scaled":
            return Rational(draw(_FACTORS)) * draw(_matrix(words, rows, cols, budget - 1))
        case _:
            left = draw(_matrix(words, rows, cols, half))
            right = draw(_matrix(words, rows, cols, budget - half))
            if kind == "elementwise":
                return mx.HadamardProduct(left, right)
            return left + right if kind == "sum" else left - right


@st.composite
def _scalar(draw: DrawFn, words: _Words, budget: int) -> Any:
    """A squared norm or a trace, or a sum or product of them."""
    from sympy import Trace

    from nonmixing.algebra.sympy_door import norm2

    half = max(1, budget // 2)
    kinds = ("norm2", "trace") if budget <= 2 else ("norm2", "trace", "sum", "product")
    match draw(st.sampled_from(kinds)):
        case "norm2":
            rows, cols = draw(st.sampled_from([tuple(x.shape) for x in words.letters]))
            return norm2(draw(_matrix(words, rows, cols, half)))
        case "trace":
            n = draw(st.sampled_from(words.dims))  # X X.T is square, so each dimension has one
            return Trace(draw(_matrix(words, n, n, budget)))
        case "sum":
            return draw(_scalar(words, half)) + draw(_scalar(words, half))
        case _:
            return draw(_scalar(words, half)) * draw(_scalar(words, half))
