"""A derived flow to NumPy.

The velocities are taken from the prover's expanded form, and turned into a straight-line program:
one instruction a distinct subexpression, products of several matrices in the order that costs least
at the sizes at hand (the classical matrix-chain recursion). A program takes one state or a stack of
them, along leading axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import methodcaller
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nonmixing.algebra import dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import Expr
from nonmixing.errors import InputError, ShapeError
from nonmixing.flow import GradientFlow, differentiate

Array = NDArray[np.float64]
Velocity = Callable[[Sequence[Array]], tuple[Array, ...]]


def lower(flow: GradientFlow, parameters: Mapping[str, Array | float]) -> Velocity:
    """A NumPy function for the velocities of a flow.

    Args:
        flow: the derived flow.
        parameters: value of everything in the loss that does not move: arrays (2-D; a vector is a
            column) and floats.

    Returns:
        A function from the variables' values, in the flow's order, to their velocities, as new
        arrays of the same shapes, float64. The values may be stacked, with the same leading axes
        for all: (..., rows, columns).

    Raises:
        InputError: a parameter is missing or does not belong to the loss.
        ShapeError: (from the returned function) shapes that do not fit each other.
    """
    return lowered(flow, velocities(flow), parameters)


def velocities(flow: GradientFlow) -> tuple[Expr, ...]:
    """The velocities of a flow's variables, derivatives taken, in the flow's order."""
    return tuple(
        differentiate(ex.d(flow.setting.symbol(name)), flow.setting) for name in flow.variables
    )


def lowered(
    flow: GradientFlow, expressions: Sequence[Expr], parameters: Mapping[str, Array | float]
) -> Velocity:
    """A NumPy function for expressions of a flow's variables, without derivatives in them.

    Args:
        flow: what declares the names; its variables are the arguments.
        expressions: of the variables and the parameters.
        parameters: as for `lower`.

    Returns:
        A function from the variables' values, in the flow's order and stacked or not, to the values
        of the expressions, each as a new array (..., rows, columns).

    Raises:
        InputError: a parameter is missing or does not belong to the loss.
        ShapeError: (from the returned function) shapes that do not fit each other.
    """
    used = {
        str(n.data) for v in expressions for n in _nodes(v) if n.op in ("symbol", "scalar")
    } - set(flow.variables)
    missing = sorted(used - set(parameters))
    unknown = sorted(set(parameters) - set(flow.setting.matrices) - flow.setting.scalars)
    if missing or unknown:
        raise InputError(
            f"lower: parameters missing: {', '.join(missing) or 'none'}; "
            f"not in the loss: {', '.join(unknown) or 'none'}"
        )
    fixed = {
        name: np.atleast_2d(np.array(value, dtype=np.float64)) for name, value in parameters.items()
    }
    programs: dict[tuple[tuple[int, ...], ...], _Program] = {}

    def values(state: Sequence[Array]) -> tuple[Array, ...]:
        if len(state) != len(flow.variables):
            raise ShapeError(
                f"state: got {len(state)} arrays; expected {len(flow.variables)}, for "
                f"{', '.join(flow.variables)}"
            )
        lead = state[0].shape[:-2]
        if any([value.shape[:-2] != lead for value in state]):  # a list: faster, and this is inner
            stacks = {value.shape[:-2] for value in state}
            raise ShapeError(
                f"state: got leading axes {', '.join(map(str, sorted(stacks)))}; the same are "
                "expected for all variables"
            )
        shapes = tuple([value.shape[-2:] for value in state])
        program = programs.get(shapes)
        if program is None:
            program = programs[shapes] = _compile(flow, expressions, fixed, shapes)
        return program.run(state)

    return values


_transpose = methodcaller("swapaxes", -1, -2)

_FRESH = frozenset({"matmul", "add", "scale", "times", "power", "reciprocal", "inv"})
"""Operations whose result is an array of its own."""


@dataclass
class _Program:
    """Registers and instructions.

    The first registers hold the variables, then come the constants.
    """

    constants: list[Array]
    results: tuple[tuple[int, bool], ...] = ()  # a register, and whether the caller may have it
    code: list[tuple[Callable[..., Array], tuple[int, ...]]] = field(
        default_factory=list[tuple[Callable[..., Array], tuple[int, ...]]]
    )

    def run(self, state: Sequence[Array]) -> tuple[Array, ...]:
        registers: list[Array] = [*state, *self.constants]
        for function, args in self.code:
            match args:
                case (one, two):
                    registers.append(function(registers[one], registers[two]))
                case (one,):
                    registers.append(function(registers[one]))
                case _:
                    registers.append(function())
        return tuple(
            [registers[result] if own else registers[result].copy() for result, own in self.results]
        )


def _compile(
    flow: GradientFlow,
    expressions: Sequence[Expr],
    fixed: Mapping[str, Array],
    shapes: Sequence[tuple[int, ...]],
) -> _Program:
    sizes: dict[str, int] = {}
    known = dict(zip(flow.variables, shapes, strict=True)) | {
        name: value.shape for name, value in fixed.items()
    }
    for name, shape in known.items():
        declared = flow.setting.matrices.get(name, (1, 1))
        if len(shape) != 2:
            raise ShapeError(
                f"{name} must be 2-D ({declared[0]} x {declared[1]}), got shape {shape}"
            )
        for dim, size in zip(declared, shape, strict=True):
            if sizes.setdefault(str(dim), size) != size or (isinstance(dim, int) and dim != size):
                raise ShapeError(
                    f"{name} has shape {shape} but is declared {declared[0]} x {declared[1]} with "
                    f"{dim} = {dim if isinstance(dim, int) else sizes[str(dim)]}"
                )
    compiler = _Compiler(flow.variables, fixed, sizes)
    program = compiler.program
    # What is not computed afresh would alias the state or a constant; the caller may change it.
    program.results = tuple(
        (compiler.register(expression), expression.op in _FRESH) for expression in expressions
    )
    return program


class _Compiler:
    """Turns expressions into instructions, each distinct one once."""

    def __init__(
        self, variables: Sequence[str], fixed: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> None:
        self.sizes = sizes
        self.program = _Program(list(fixed.values()))
        self.symbols = {name: i for i, name in enumerate((*variables, *fixed))}
        self.known: dict[Expr, int] = {}

    def size(self, dim: Dim) -> int:
        return dims.size(dim, self.sizes)

    def emit(self, function: Callable[..., Any], *args: int) -> int:
        self.program.code.append((cast("Callable[..., Array]", function), args))
        return len(self.symbols) + len(self.program.code) - 1

    def register(self, expr: Expr) -> int:
        """The register that holds an expression's value."""
        if expr not in self.known:
            self.known[expr] = self._compute(expr)
        return self.known[expr]

    def _compute(self, expr: Expr) -> int:
        rows, cols = self.size(expr.rows), self.size(expr.cols)
        match expr.op:
            case "symbol" | "scalar":
                return self.symbols[str(expr.data)]
            case "number":
                return self._constant(np.array([[float(cast(Fraction, expr.data))]]))
            case "dim":
                return self._constant(np.array([[float(self.size(str(expr.data)))]]))
            case "eye":
                return self._constant(np.eye(rows))
            case "ones" | "zeros":
                return self._constant(np.full((rows, cols), float(expr.op == "ones")))
            case "matmul":
                return self._chain(_flatten(expr))
            case "T":
                return self.emit(_transpose, self.register(expr.args[0]))
            case "add":
                return self._sum(expr.args)
            case "scale" | "times":
                return self.emit(np.multiply, *map(self.register, expr.args))
            case "power":
                return self._power(expr.args[0], cast(int, expr.data))
            case "reciprocal":
                return self.emit(np.reciprocal, self.register(expr.args[0]))
            case "tr":
                return self.emit(_trace, self.register(expr.args[0]))
            case "total":
                return self.emit(_total, self.register(expr.args[0]))
            case "diag":
                return self.emit(_diagonal, self.register(expr.args[0]))
            case "diagpart":
                return self.emit(_diagonal_part, self.register(expr.args[0]))
            case "inv":
                return self.emit(np.linalg.inv, self.register(expr.args[0]))
            case op:
                raise InputError(f"lower: {op} cannot be turned into NumPy")

    def _constant(self, value: Array) -> int:
        # Only the registers of parameters come before the instructions,
        # so a constant is computed by an instruction without arguments.
        return self.emit(lambda: value)

    def _power(self, base: Expr, exponent: int) -> int:
        def power(a: Array) -> Array:
            return a**exponent

        return self.emit(power, self.register(base))

    def _sum(self, terms: Sequence[Expr]) -> int:
        total = self.register(terms[0])
        for term in terms[1:]:
            if term.op == "scale" and term.args[0] == ex.number(-1):
                total = self.emit(np.subtract, total, self.register(term.args[1]))
            else:
                total = self.emit(np.add, total, self.register(term))
        return total

    def _chain(self, factors: Sequence[Expr]) -> int:
        """A product of matrices, bracketed at least cost."""
        sizes = [self.size(factors[0].rows), *(self.size(factor.cols) for factor in factors)]
        count = len(factors)
        cost: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(count)}
        for width in range(1, count):
            for i in range(count - width):
                j = i + width
                cost[i, j] = min(
                    (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                    for k in range(i, j)
                )

        def product(i: int, j: int) -> Expr:
            if i == j:
                return factors[i]
            k = cost[i, j][1]
            return ex.matmul(product(i, k), product(k + 1, j))

        def place(expr: Expr, i: int, j: int) -> int:
            if i == j:
                return self.register(expr)
            if expr not in self.known:
                k = cost[i, j][1]
                left, right = expr.args
                self.known[expr] = self.emit(np.matmul, place(left, i, k), place(right, k + 1, j))
            return self.known[expr]

        return place(product(0, count - 1), 0, count - 1)


def _trace(a: Array) -> Array:
    return np.trace(a, axis1=-2, axis2=-1)[..., None, None]


def _total(a: Array) -> Array:
    return np.sum(a, axis=(-2, -1), keepdims=True)


def _diagonal(column: Array) -> Array:
    return column * np.eye(column.shape[-2])


def _diagonal_part(a: Array) -> Array:
    return a * np.eye(a.shape[-1])


def _flatten(expr: Expr) -> list[Expr]:
    if expr.op != "matmul":
        return [expr]
    return [factor for arg in expr.args for factor in _flatten(arg)]


def _nodes(expr: Expr) -> list[Expr]:
    return [expr, *(node for arg in expr.args for node in _nodes(arg))]
