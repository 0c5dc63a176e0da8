"""Whether a user's function computes what a formula says."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nonmixing.algebra import Setting, Statement, dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.evaluate import Evaluator
from nonmixing.algebra.node import Expr
from nonmixing.algebra.printing import to_text
from nonmixing.algebra.sampling import feasible, sample
from nonmixing.algebra.setting import Names, names_of
from nonmixing.errors import InputError, NonmixingError
from nonmixing.testing.calls import (
    EXACT,
    UNABLE,
    Argument,
    ArraysName,
    Precision,
    Route,
    RouteName,
    Rows,
    Unable,
    called,
    routes,
    same,
)
from nonmixing.testing.failure import refusing_at_the_call
from nonmixing.testing.paste import (
    expression,
    matrix,
    preamble,
    safe_names,
    without_derivatives,
)

RIGID = frozenset({"orthonormal", "orthogonal"})
DRAWS = 40
"""Draws at given sizes until the formula is defined; an inverse may fail to be."""

BOUND = 24
"""Numerators of the rationals at which a function is tried; they lie in [-24, 24]."""

DENOMINATOR = 8
"""Their denominator: a power of two, so that float64 has them exactly."""

SMALL = (1, 2, 3)
"""Sizes, and sizes of the entries, at which a small counterexample is looked for."""

SMALL_DRAWS = 12
SIMPLER = (0, 1, -1, 2)
"""Values that are tried in place of an entry, the simplest first."""

# SymPy's expressions carry no usable types, and a user's function has none: `Any` stands for them.


@dataclass(frozen=True)
class Implementation:
    """How a function was found to compute a formula.

    Attributes:
        route: `prime field` or `fractions`, where nothing was rounded; else `float64`, which is
            what the function was given.
        arrays: the library whose arrays it was given, `numpy` or `torch`.
        sizes: at which it was tried.
        precision: of what came back, `float64`, `float32`, ... (the lowest of several results);
            `exact numbers` on the exact routes.
        tolerance: the error granted to that precision, relative to the largest entry of the
            formula's value, or to 1 if that is larger; 0 on the exact routes.
        because: why no more telling route was taken; else "".
    """

    route: RouteName
    arrays: ArraysName
    sizes: tuple[Mapping[str, int], ...]
    precision: str
    tolerance: float
    because: str = ""

    def __str__(self) -> str:
        """In one line."""
        sizes = "; ".join(_sizes_line(each) for each in self.sizes)
        how = {
            "prime field": "exactly, modulo 2^61 - 1",
            "fractions": "exactly, in fractions",
            "float64": f"in {Precision(self.precision, self.tolerance)}",
        }[self.route]
        reason = f" ({self.because})" if self.because else ""
        return f"agrees {how}, on {self.arrays} arrays at {sizes}{reason}"


@refusing_at_the_call
def assert_implements(
    function: Callable[..., Any],
    expr: Any,
    arguments: Sequence[Any] | None = None,
    *,
    gradient_in: Any = None,
    assuming: Sequence[Any] = (),
    flat: bool = False,
    arrays: ArraysName | None = None,
    exactly: bool = False,
    seed: int = 0,
) -> Implementation:
    """Assert that a function on NumPy or torch arrays computes a SymPy expression.

    It is called at several sizes, on arrays of integers modulo the prime 2^61 - 1 where its code
    allows that (sums, products, transposes, division; a polynomial of degree d that is wrong passes
    with probability about d / 2^61), on arrays of fractions where it compares numbers too, and on
    float64 arrays where neither is possible, as for torch. What comes back is held against the
    formula's value in exact arithmetic. Half of the digits of its own precision must agree: to
    1.5e-8 for float64, to 3.5e-4 for float32.

    Args:
        function: takes arrays (n x 1 and 1 x n matrices too have two axes; a SymPy `Symbol` is a
            number, a dimension an int), and returns an array, or a tuple of them.
        expr: what it must compute; a sequence of expressions for a function with several results.
        arguments: the symbols that it takes, in order; by default those that its parameters are
            named after.
        gradient_in: a matrix symbol, or several: then `expr` is a scalar and the function must
            compute its gradient in each of them.
        assuming: predicates of the arguments, such as `Q.symmetric(X)`.
        flat: whether columns (n x 1) are passed and returned with one axis.
        arrays: `numpy` or `torch`; by default NumPy's, then torch's if torch has been imported.
        exactly: whether a comparison of floats is not enough.
        seed: of the random entries.

    Returns:
        How it was decided: the route, the sizes, and what kept it from a more telling route.

    Raises:
        AssertionError: it computes something else; the message has a small counterexample.
        InputChanged: it changes an array that it was given.
        WrongShape: it returns an array of another shape.
        WrongResult: it returns no array of real numbers.
        NotFinite: it returns NaN or infinity.
        NotDeterministic: it is random, or keeps state between calls.
        InputError: a parameter that is no symbol, or an expression outside the language.
    """
    __tracebackhide__ = True
    task = _task(function, expr, arguments, gradient_in, assuming, flat)
    reasons: list[str] = []
    ways = routes(arrays)
    for route in ways:
        try:
            tried = _tried(task, route, random.Random(seed))
        except Unable as reason:
            reasons.append(str(reason))
            continue
        except UNABLE as error:
            last = route is ways[-1] or isinstance(error, NonmixingError)
            if last or route.is_exact:
                raise
            reasons.append(f"{type(error).__name__} on NumPy arrays")
            continue
        if isinstance(tried, _Difference):
            raise AssertionError(_explain(task, route, _smaller(task, route, tried, seed)))
        because = reasons[0] if reasons else ""
        found = tried.precision
        if exactly and not route.is_exact:
            raise AssertionError(
                f"{task.name} agrees in {found.name} only; it cannot be run on exact numbers: "
                f"{because}"
            )
        return Implementation(
            route.name, route.arrays, tried.sizes, found.name, found.tolerance, because
        )
    raise InputError(f"{task.name}: it can be run on no kind of array: {'; '.join(reasons)}")


# --- what is asked ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """A function, the formulas of its results, and its arguments by name."""

    function: Callable[..., Any]
    name: str
    results: tuple[Expr, ...]
    texts: tuple[str, ...]
    arguments: tuple[str, ...]
    setting: Setting
    names: Names
    flat: bool

    def form(self, name: str) -> Any:
        if name in self.setting.scalars:
            return "number"
        if name not in self.setting.matrices:
            return "size"
        column = self.setting.matrices[name][1] == 1
        return "flat" if self.flat and column else "matrix"

    def passed(self, sizes: Mapping[str, int], values: Mapping[str, Rows]) -> list[Argument]:
        """The arguments at given values."""
        result: list[Argument] = []
        for name in self.arguments:
            form = self.form(name)
            value = sizes[name] if form == "size" else values[name]
            if form == "number":
                value = values[name][0][0]
            result.append(Argument(value, form))
        return result

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The shapes of the results."""
        shapes: list[tuple[int, ...]] = []
        for result in self.results:
            rows, cols = (dims.size(dim, sizes) for dim in result.shape)
            flat = self.flat and result.cols == 1 and result.rows != 1
            shapes.append((rows,) if flat else (rows, cols))
        return shapes

    def expected(
        self, sizes: Mapping[str, int], values: Mapping[str, Rows], prime: int | None
    ) -> list[Rows]:
        """The values of the formulas, in exact arithmetic."""
        evaluator = Evaluator(self.setting, sizes, cast("Any", values), prime)
        return [evaluator.at(result) for result in self.results]

    def draw(
        self, sizes: Mapping[str, int], rng: random.Random, bound: int, prime: int | None
    ) -> dict[str, Rows]:
        """Values of the arguments, of their kinds."""
        nought = ex.number(0)
        statement = Statement("arguments", nought, nought, self.setting, "0", "0")
        return dict(sample(statement, self.names, sizes, rng, bound, prime))


def _task(
    function: Callable[..., Any],
    expr: Any,
    arguments: Sequence[Any] | None,
    gradient_in: Any,
    assuming: Sequence[Any],
    flat: bool,
) -> _Task:
    from nonmixing.algebra import sympy_door

    name = str(getattr(function, "__name__", "function"))
    name = name if name.isidentifier() else "function"
    formulas = _listed(expr)
    variables = [] if gradient_in is None else _listed(gradient_in)
    if variables and len(formulas) != 1:
        raise InputError(
            f"gradient_in: got {len(formulas)} expressions; the gradient of one scalar is expected"
        )
    symbols = _listed(arguments or ())
    read = sympy_door.read([*formulas, *variables, *symbols], _listed(assuming))
    if read.setting.functions:
        raise InputError(
            f"{name}: {next(iter(read.setting.functions))} is an opaque function, "
            "which has no values to compare with"
        )
    loss, moved = read.exprs[0], read.exprs[len(formulas) :][: len(variables)]
    results = tuple(ex.grad(loss, x) for x in moved) or read.exprs[: len(formulas)]
    texts = tuple(f"grad({formulas[0]}, {x})" for x in variables) or tuple(map(str, formulas))
    given = read.exprs[len(read.exprs) - len(symbols) :] if symbols else ()
    names = _names(read.exprs, read.setting)
    order = _order(function, name, symbols, given, names)
    return _Task(function, name, results, texts, order, read.setting, names, flat)


def _listed(value: Any) -> list[Any]:
    """One or several, as a list; a SymPy matrix symbol can be iterated over and is one."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def _names(exprs: Sequence[Expr], setting: Setting) -> Names:
    """What occurs anywhere, arguments that no formula needs included."""
    nought = ex.number(0)
    found = [names_of(Statement("", each, nought, setting, "", "")) for each in exprs]
    return Names(
        tuple(setting.matrices),
        tuple(sorted(setting.scalars)),
        tuple(sorted({dim for each in found for dim in each.dims})),
        tuple(sorted({size for each in found for size in each.integers})),
    )


def _order(
    function: Callable[..., Any],
    name: str,
    symbols: Sequence[Any],
    given: Sequence[Expr],
    names: Names,
) -> tuple[str, ...]:
    """The names of the arguments, in order."""
    known = {*names.matrices, *names.scalars, *names.dims}
    if symbols:
        for symbol, read in zip(symbols, given, strict=True):
            if read.op not in ("symbol", "scalar", "dim"):
                raise InputError(f"arguments: {symbol} is no symbol; pass what {name} takes")
        return tuple(str(read.data) for read in given)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(
            f"arguments: the parameters of {name} cannot be found out; pass the symbols it takes"
        ) from None
    order: list[str] = []
    for parameter in parameters:
        positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if positional and parameter.name in known:
            order.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise InputError(
                f"arguments: the parameter {parameter.name} of {name} is no symbol of the "
                f"expression ({', '.join(sorted(known))}); pass arguments=[...], the symbols "
                "in the function's order"
            )
        else:
            break
    return tuple(order)


# --- trying -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tried:
    sizes: tuple[Mapping[str, int], ...]
    precision: Precision


@dataclass(frozen=True)
class _Difference:
    """Where a result is not what the formula says; `got` and `expected` of result `place`."""

    sizes: Mapping[str, int]
    values: Mapping[str, Rows]
    place: int
    got: Rows
    expected: Rows
    precision: Precision


def _tried(task: _Task, route: Route, rng: random.Random) -> _Tried | _Difference:
    """The function at several sizes: unequal ones, others, and all 1."""
    __tracebackhide__ = True
    done: list[Mapping[str, int]] = []
    lowest = EXACT
    for sizes in _several_sizes(task, rng):
        values = _values(task, sizes, route, rng)
        if values is None:
            continue
        outcome = _compared(task, route, sizes, values)
        if isinstance(outcome, _Difference):
            return outcome
        lowest = _lower(lowest, outcome)
        done.append(sizes)
    if not done:
        raise InputError(f"{task.name}: the expression was defined at none of the values tried")
    return _Tried(tuple(done), lowest)


def _several_sizes(task: _Task, rng: random.Random) -> Iterator[dict[str, int]]:
    count = len(task.names.dims)
    if not count:
        yield from ({}, {}, {})  # other values each time
        return
    choices = [rng.sample(range(2, count + 3), count) for _ in range(2)]
    choices += [sorted(choices[0]), sorted(choices[0], reverse=True), [1] * count]
    seen: list[dict[str, int]] = []
    for choice in choices:
        sizes = dict(zip(task.names.dims, choice, strict=True))
        if sizes not in seen and feasible(task.setting, task.names, sizes):
            seen.append(sizes)
            yield sizes


def _values(
    task: _Task, sizes: Mapping[str, int], route: Route, rng: random.Random
) -> dict[str, Rows] | None:
    """Random values at which the formulas are defined."""
    for _ in range(DRAWS):
        try:
            values = task.draw(sizes, rng, BOUND, route.prime)
            if route.prime is None:
                values = {name: _divided(task, name, rows) for name, rows in values.items()}
            task.expected(sizes, values, route.prime)
        except ArithmeticError:
            continue
        return values
    return None


def _divided(task: _Task, name: str, rows: Rows) -> Rows:
    """Integers made fractions, where the kind allows that."""
    if task.setting.kinds_of(name) & RIGID:
        return rows
    return tuple(tuple(Fraction(x) / DENOMINATOR for x in row) for row in rows)


def _compared(
    task: _Task, route: Route, sizes: Mapping[str, int], values: Mapping[str, Rows]
) -> Precision | _Difference:
    """The lowest precision of the results, or the first difference."""
    __tracebackhide__ = True
    shapes, where = task.shapes(sizes), _sizes_line(sizes)
    expected = task.expected(sizes, values, route.prime)
    got = called(task.function, task.name, route, task.passed(sizes, values), shapes, where)
    lowest = EXACT
    for place, (array, rows) in enumerate(zip(got, expected, strict=True)):
        kind: Any = object if route.is_exact else np.float64
        wanted: NDArray[Any] = np.array(rows, dtype=kind).reshape(array.shape)
        if not same(array, wanted, route):
            found = array.reshape(len(rows), len(rows[0])).tolist()
            return _Difference(sizes, values, place, found, rows, Precision.of(array))
        lowest = _lower(lowest, Precision.of(array))
    return lowest


def _lower(one: Precision, other: Precision) -> Precision:
    return max(one, other, key=lambda precision: precision.tolerance)


# --- small counterexamples ------------------------------------------------------------------------


def _smaller(task: _Task, route: Route, found: _Difference, seed: int) -> _Difference:
    """A small integer counterexample; the one found if there seems to be none."""
    # An integer modulo a prime is no use to a reader, and what runs on those runs on fractions.
    way = Route("fractions") if route.name == "prime field" else route
    rng = random.Random(seed)
    choices = sorted(
        product(SMALL, repeat=len(task.names.dims)), key=lambda c: (max(c, default=1), sum(c), c)
    )
    for choice in choices:
        sizes = dict(zip(task.names.dims, choice, strict=True))
        if not feasible(task.setting, task.names, sizes):
            continue
        for bound in SMALL:
            for _ in range(SMALL_DRAWS):
                try:
                    values = task.draw(sizes, rng, bound, None)
                except ArithmeticError:
                    continue
                different = _different(task, way, sizes, values)
                if different is not None:
                    return _shrunk(task, way, different)
    if way is route:
        return found
    values = _values(task, found.sizes, way, rng)
    different = None if values is None else _different(task, way, found.sizes, values)
    return different or found


def _different(
    task: _Task, route: Route, sizes: Mapping[str, int], values: Mapping[str, Rows]
) -> _Difference | None:
    """The difference at given values; None if there is none, or the formula has no value."""
    try:
        outcome = _compared(task, route, sizes, values)
    except (Unable, ArithmeticError):
        return None
    return outcome if isinstance(outcome, _Difference) else None


def _shrunk(task: _Task, route: Route, found: _Difference) -> _Difference:
    """Entries made 0 or 1, one after the other, as long as there is a difference."""
    for name in (*task.names.matrices, *task.names.scalars):
        if task.setting.kinds_of(name):
            continue
        for i, row in enumerate(found.values[name]):
            for j in range(len(row)):
                for smaller in SIMPLER:
                    if found.values[name][i][j] == smaller:
                        break
                    changed = [list(row) for row in found.values[name]]
                    changed[i][j] = smaller
                    tried = {**found.values, name: changed}
                    different = _different(task, route, found.sizes, tried)
                    if different is not None:
                        found = different
                        break
    return found


# --- words --------------------------------------------------------------------------------------


def _explain(task: _Task, route: Route, found: _Difference) -> str:
    call = f"{task.name}({', '.join(task.arguments)})"
    call += f"[{found.place}]" if len(task.results) > 1 else ""
    how = "exactly" if route.is_exact else f"in {found.precision}"
    gap = [
        [x - y for x, y in zip(row, other, strict=True)]
        for row, other in zip(found.got, found.expected, strict=True)
    ]
    formula = without_derivatives(task.results[found.place], task.setting)
    lines = [
        f"{task.name} does not compute {task.texts[found.place]}: "
        f"compared {how}, they differ at {_sizes_line(found.sizes)}",
        f"  left          {call}, which is {matrix(found.got)}",
        f"  right         {task.texts[found.place]}, which is {matrix(found.expected)}",
        f"  left - right  {matrix(gap)}",
    ]
    if formula is not None and to_text(formula) != task.texts[found.place]:
        lines.append(f"  right, again  {to_text(formula)}")
    lines += ["", f"The counterexample, where {task.name} is defined, to be pasted:", ""]
    return "\n".join([*lines, _program(task, route, found, formula)])


def _program(task: _Task, route: Route, found: _Difference, formula: Expr | None) -> str:
    values: dict[str, Any] = {
        name: rows[0][0] if name in task.setting.scalars else rows
        for name, rows in found.values.items()
    }
    names = safe_names((*found.sizes, *values))
    lines = preamble([formula], found.sizes, values)
    text = "" if formula is None else expression(formula, names)
    passed: list[str] = []
    assigned = {word for line in lines for word in line.partition(" = ")[0].split(", ")}
    for name in task.arguments:
        form, shown = task.form(name), names[name]
        if form == "size" and shown not in assigned:
            lines.append(f"{shown} = {found.sizes[name]}")
        shown += "[:, 0]" if form == "flat" else ""
        is_tensor = route.arrays == "torch" and form in ("flat", "matrix")
        passed.append(f"tensor({shown})" if is_tensor else shown)
    result = f"{task.name}({', '.join(passed)})"
    result += f"[{found.place}]" if len(task.results) > 1 else ""
    if route.arrays == "torch":
        lines[1:1] = ["import torch", "tensor = lambda A: torch.tensor(A, dtype=torch.float64)"]
        result = f"np.asarray(torch.as_tensor({result}).detach())"
    shape = len(found.expected), len(found.expected[0])
    if task.flat and shape[1] == 1 and shape[0] > 1:
        result = f"np.reshape({result}, {shape})"
    right = f"np.array({matrix(found.expected)})" if formula is None else text
    return "\n".join([*lines, f"left = {result}", f"right = {right}", "print(left - right)"])


def _sizes_line(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "the stated sizes"
