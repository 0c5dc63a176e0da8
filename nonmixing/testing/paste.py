"""Exact values and formulas as NumPy code that can be pasted and run."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from nonmixing.algebra import Counterexample, Setting, Statement, dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import Expr, node
from nonmixing.algebra.printing import to_text
from nonmixing.errors import InputError
from nonmixing.flow import resolved

Number = int | Fraction
Rows = Sequence[Sequence[Number]]

FUNCTIONS: Mapping[str, str] = {
    "tr": "np.trace",
    "sum": "np.sum",
    "norm2": "lambda A: np.sum(A**2)",
    "diag": "np.diagflat",
    "diagpart": "lambda A: np.diag(np.diag(A))",
    "inv": "np.linalg.inv",
    "eye": "np.eye",
    "ones": "lambda m, n: np.ones((m, n))",
    "zeros": "lambda m, n: np.zeros((m, n))",
    "kron": "np.kron",
    "vec": 'lambda A: A.reshape(-1, 1, order="F")',
    "face_splitting": "lambda A, B: np.vstack([np.kron(a, b) for a, b in zip(A, B)])",
    "hstack": "lambda *M: np.block([list(M)])",
    "vstack": "lambda *M: np.block([[A] for A in M])",
    "blkdiag": "scipy.linalg.block_diag",
}
"""The functions of the prover's language in NumPy's."""

_TAKEN = frozenset({"np", "scipy", "left", "right", "print", *FUNCTIONS})
_NUMBERS = frozenset({"number", "scalar", "dim", "tr", "total"})
_PASSED_ON = frozenset({"add", "scale", "times", "power", "reciprocal"})


def program(statement: Statement | None, found: Counterexample) -> str:
    """A counterexample as code that computes both sides, and prints their difference.

    The sides are the statement's formulas with their derivatives written out; where one has no
    matrix notation (or there is no statement), its exact value stands in its place.
    """
    sides = () if statement is None else (statement.left, statement.right)
    formulas = [without_derivatives(side, statement.setting) for side in sides if statement]
    left, right = formulas or (None, None)
    lines = preamble([left, right], found.dims, found.values)
    lines += [
        f"left = {_side(left, found.left, found)}",
        f"right = {_side(right, found.right, found)}",
        "print(left - right)",
        f"# exactly: left is {matrix(found.left)}, right is {matrix(found.right)}",
    ]
    return "\n".join(lines)


def preamble(
    formulas: Iterable[Expr | None],
    sizes: Mapping[str, int],
    values: Mapping[str, Rows | Number | str],
) -> list[str]:
    """The lines that give meaning to the names of some formulas: imports, functions, values."""
    names = safe_names((*sizes, *values))
    texts = [expression(formula, names) for formula in formulas if formula is not None]
    used = {word for text in texts for word in re.findall(r"[^\W\d]\w*", text)}
    lines = ["import numpy as np"]
    if "blkdiag" in used:
        lines.append("import scipy.linalg")
    lines += [
        f"{name} = {meaning}"
        for name, meaning in FUNCTIONS.items()
        if name in used and name not in values
    ]
    needed = {names[name]: size for name, size in sizes.items() if names[name] in used}
    if needed:
        lines.append(f"{', '.join(needed)} = {', '.join(map(str, needed.values()))}")
    for name, value in values.items():
        if isinstance(value, str):
            lines += _polynomial(names[name], value, used)
        elif isinstance(value, int | Fraction):
            lines.append(f"{names[name]} = {value}")
        else:
            lines.append(f"{names[name]} = np.array({matrix(value)})")
    return lines


def expression(formula: Expr, names: Mapping[str, str]) -> str:
    """A formula without derivatives in NumPy's notation, its names replaced."""
    return to_text(_numerical(formula, names))


def matrix(rows: Rows) -> str:
    """Rows as nested lists, rationals as quotients."""
    return "[" + ", ".join(f"[{', '.join(map(str, row))}]" for row in rows) + "]"


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """For each name one that Python takes and that the pasted code does not use itself."""
    result: dict[str, str] = {}
    names = list(names)
    for name in names:
        safe = re.sub(r"\W", "_", name)
        if not safe.isidentifier():
            safe = f"_{safe}"
        while (
            keyword.iskeyword(safe)
            or safe in _TAKEN
            or safe in result.values()
            or (safe != name and safe in names)
        ):
            safe += "_"
        result[name] = safe
    return result


def _side(formula: Expr | None, value: Rows, found: Counterexample) -> str:
    if formula is None:
        return f"np.array({matrix(value)})  # it has no matrix notation; this is its exact value"
    return expression(formula, safe_names((*found.dims, *found.values)))


def without_derivatives(side: Expr, setting: Setting) -> Expr | None:
    """A formula with its derivatives written out; None where that has no matrix notation."""
    try:
        return resolved(side, setting)
    except InputError:
        return None


def _numerical(formula: Expr, names: Mapping[str, str]) -> Expr:
    """The formula with NumPy's distinction between numbers and 1 x 1 matrices."""
    args = tuple(_numerical(arg, names) for arg in formula.args)
    if not args:
        name = names.get(str(formula.data), formula.data)
        return node(formula.op, (), name, *(_named(dim, names) for dim in formula.shape))
    if formula.op == "apply" and isinstance(formula.data, tuple):
        name, order = formula.data
        return ex.apply(names.get(name, name), order, args[0])
    if any(map(_is_number, args)):
        if formula.op == "matmul":
            return ex.multiply(*args)
        if formula.op in ("T", "tr", "diagpart"):
            return args[0]
    if formula.op == "matmul" and args[0].op == "scale" and args[0].args[0].op == "number":
        factor, first = args[0].args
        return ex.multiply(factor, ex.matmul(first, args[1]))  # -A @ B in place of (-A) @ B
    return ex.rebuilt(formula, args)


def _named(dim: Dim, names: Mapping[str, str]) -> Dim:
    """A dimension, its names replaced."""
    if isinstance(dim, dims.Product):
        return dims.multiply(*(_named(factor, names) for factor in dim.factors))
    if isinstance(dim, dims.Sum):
        return dims.add(*(_named(part, names) for part in dim.parts))
    return names.get(dim, dim) if isinstance(dim, str) else dim


def _is_number(formula: Expr) -> bool:
    """Whether NumPy has a number here, not an array with one entry."""
    if formula.op in _PASSED_ON:
        return all(map(_is_number, formula.args))
    return formula.op in _NUMBERS


def _polynomial(name: str, text: str, used: set[str]) -> list[str]:
    """An opaque function's value, as text in z, and those of its derivatives that are used."""
    coefficients: dict[int, str] = {}
    for term in text.split(" + "):
        number, _, power = term.partition("z")
        degree = 0 if "z" not in term else int(power.removeprefix(" ** ") or 1)
        coefficients[degree] = number.removesuffix(" * ") or "1"
    entries = [coefficients.get(k, "0") for k in range(max(coefficients) + 1)]
    lines = [f"{name} = np.polynomial.Polynomial([{', '.join(entries)}])  # {text}"]
    for order in range(1, 5):
        if "d" * order + name in used:
            lines.append(f"{'d' * order}{name} = {name}.deriv({order})")
    return lines
