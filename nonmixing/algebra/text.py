"""NumPy-like text to expressions.

Through Python's `ast` and a whitelist: nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

from nonmixing.algebra import dims
from nonmixing.algebra import expr as ex
from nonmixing.algebra.depth import recursion_limit
from nonmixing.algebra.dims import Dim
from nonmixing.algebra.node import Expr
from nonmixing.algebra.setting import Setting
from nonmixing.errors import InputError, ShapeError

_ONE_ARGUMENT: Mapping[str, Callable[[Expr], Expr]] = {
    "tr": ex.tr,
    "norm2": ex.norm2,
    "sum": ex.total,
    "diag": ex.diag,
    "diagpart": ex.diagpart,
    "sym": ex.sym,
    "skew": ex.skew,
    "inv": ex.inv,
    "d": ex.d,
    "after": ex.after,
    "vec": ex.vec,
}
_TWO_ARGUMENTS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "inner": ex.inner,
    "grad": ex.grad,
    "expect": ex.expect,
    "kron": ex.kron,
    "face_splitting": ex.face_splitting,
}
_THREE_ARGUMENTS: Mapping[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "D": ex.directional,
    "tensor": ex.tensor,
}
_MANY_ARGUMENTS: Mapping[str, tuple[int, Callable[..., Expr]]] = {
    "hstack": (1, ex.hstack),
    "vstack": (1, ex.vstack),
    "blkdiag": (1, ex.blkdiag),
    "contract": (2, ex.contract),
}
_SHAPED: Mapping[str, tuple[int, Callable[..., Expr]]] = {
    "eye": (1, ex.eye),
    "ones": (2, ex.ones),
    "zeros": (2, ex.zeros),
}

FUNCTIONS = (*_ONE_ARGUMENT, *_TWO_ARGUMENTS, *_THREE_ARGUMENTS, *_MANY_ARGUMENTS, *_SHAPED)
"""Every function of the language."""

MAX_CHARACTERS = 200_000
MAX_DEPTH = 400
MAX_OPERATORS = 13_000
_OPERATORS = ("+", "-", "*", "/", "@", ".T", "(")
PARSER_DEPTH = 4_500
"""Recursion limit while Python parses; it allows three times as many operators in a row."""


@dataclass(frozen=True)
class Scope:
    """What the names in a text mean."""

    setting: Setting
    defined: Mapping[str, Expr]
    moving: bool = False
    stepping: bool = False
    named: frozenset[str] = frozenset()

    @property
    def dims(self) -> frozenset[str]:
        """Symbolic dimensions: of the declared matrices, and of eye, ones and zeros."""
        shapes = self.setting.matrices.values()
        declared = (symbol for shape in shapes for dim in shape for symbol in dims.symbols(dim))
        return self.named.union(declared)


def parse(text: str, scope: Scope, where: str) -> Expr:
    """Read an expression.

    Args:
        text: the expression, in NumPy's notation.
        scope: what the names mean.
        where: how to call this text in messages, such as "claim 'F1'".

    Raises:
        InputError: the text is not an expression of the language.
        ShapeError: operands do not fit; the message names them and their dimensions.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"{where}: {len(text)} characters in one expression; at most {MAX_CHARACTERS} are read"
        )
    if (operators := sum(map(text.count, _OPERATORS))) > MAX_OPERATORS:
        raise InputError(
            f"{where}: {operators} operators in one expression; at most {MAX_OPERATORS} are read, "
            "define abbreviations under [define]"
        )
    try:
        # In brackets, so that an expression may go over several lines.
        source = f"({text.strip()}\n)"
        if not re.sub(r"#[^\n]*", "", text).strip():
            raise InputError(f"{where}: cannot read {_short(text)}: there is no expression")
        if _closes_early(text):
            raise InputError(f"{where}: cannot read {_short(text)}: unmatched ')'")
        # A sum of thousands of terms is deep for Python's parser; what it recurses in is C.
        with recursion_limit(PARSER_DEPTH):
            tree = ast.parse(source, mode="eval")
            return _Reader(scope, where, source).read(tree.body)
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(
            f"{where}: cannot read {_short(text)}: {error.msg} (column {error.offset})"
        ) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise InputError(
            f"{where}: cannot read {_short(text)}: {str(error) or 'nested too deeply'}; "
            "define abbreviations under [define]"
        ) from None


def _closes_early(text: str) -> bool:
    """Whether a bracket closes that was not opened, so that the outer ones would be torn apart."""
    depth = 0
    for character in re.sub(r"#[^\n]*", "", text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return True
    return False


_SHAPES = re.compile(r"\b(?:eye|ones|zeros)\(([^()]*)\)")


def dims_named(text: str) -> frozenset[str]:
    """The names that stand as dimensions of eye, ones and zeros in a text."""
    return frozenset(
        name for inside in _SHAPES.findall(text) for name in re.findall(r"[^\W\d]\w*", inside)
    )


def split_equation(text: str, where: str) -> tuple[str, str]:
    """The two sides of `left == right`."""
    sides = text.split("==")
    if len(sides) != 2 or not sides[0].strip() or not sides[1].strip():
        raise InputError(
            f"{where}: {_short(text)} is not of the form left == right "
            "(exactly one ==, a side on each end)"
        )
    return sides[0].strip(), sides[1].strip()


def equation(text: str, scope: Scope, where: str) -> tuple[Expr, Expr]:
    """Read `left == right`; the shapes must agree, or a side be the literal 0."""
    left_text, right_text = split_equation(text, where)
    scope = replace(scope, named=scope.named | dims_named(text))
    left, right = parse(left_text, scope, where), parse(right_text, scope, where)
    same_shape(left, right, where)
    return left, right


def same_shape(left: Expr, right: Expr, where: str) -> None:
    """Refuse an equation between different shapes."""
    if not ex.fits(left, right) and not ex.is_zero_literal(left) and not ex.is_zero_literal(right):
        raise ShapeError(
            f"{where}: the sides have different shapes: "
            f"left is {ex.spell(left)}, right is {ex.spell(right)}"
        )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 60 else flat[:57] + "...")


class _Reader:
    """Walks Python's syntax tree."""

    def __init__(self, scope: Scope, where: str, source: str) -> None:
        self.scope = scope
        self.where = where
        self.source = source
        self.depth = 0

    def fail(self, message: str) -> NoReturn:
        raise InputError(f"{self.where}: {message}")

    def read(self, node: ast.expr) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested more than {MAX_DEPTH} deep; define abbreviations under [define]")
        try:
            return self._read(node)
        except ShapeError as error:
            if str(error).startswith(self.where):
                raise
            raise ShapeError(f"{self.where}: {error}") from None
        except InputError as error:
            if str(error).startswith(self.where):
                raise
            raise InputError(f"{self.where}: {error}") from None
        finally:
            self.depth -= 1

    def _read(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=bool() | str() | bytes() | complex() | None):
                self.fail(f"{ast.unparse(node)} is not a number")
            case ast.Constant(value=int() as value):
                return ex.number(value)
            case ast.Constant(value=float()):
                return ex.number(self._decimal(node))
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp():
                return self._chain(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ex.negative(self.read(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.Attribute(value=value, attr="T"):
                return ex.transpose(self.read(value))
            case ast.Attribute(attr=attr):
                self.fail(f"attribute .{attr} is not in the language; only .T is")
            case ast.Call():
                return self._call(node)
            case ast.Compare():
                self.fail(
                    "a comparison stands inside an expression; "
                    "a claim has one == between its two sides"
                )
            case _:
                self.fail(f"{_short(ast.unparse(node))} is not in the language")

    def _decimal(self, node: ast.Constant) -> Fraction:
        # From the text itself, not from the float: decimals are exact.
        written = ast.get_source_segment(self.source, node) or repr(node.value)
        if len(written) > 60 or abs(int(written.lower().partition("e")[2] or 0)) > 300:
            self.fail(
                f"the number {_short(written)} is too long or too large; "
                "write it as an integer or a fraction"
            )
        return Fraction(written)

    def _name(self, name: str) -> Expr:
        if name in self.scope.defined:
            return self.scope.defined[name]
        if name in self.scope.setting.matrices or name in self.scope.setting.scalars:
            return self.scope.setting.symbol(name)
        if name in self.scope.dims:
            return ex.dimension(name)
        known = sorted(
            {*self.scope.setting.matrices, *self.scope.setting.scalars, *self.scope.defined}
        )
        if name in FUNCTIONS:
            self.fail(f"the function {name} needs arguments, as in {name}(...)")
        self.fail(
            f"unknown matrix {name!r}; declared: {', '.join(known) or 'nothing'} "
            "(declare it under [matrices])"
        )

    def _chain(self, node: ast.BinOp) -> Expr:
        """A left-deep chain of operators, read in a loop.

        Sums of thousands of terms are no deep nesting.
        """
        spine: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            spine.append(left)
            left = left.left
        value = self.read(left)
        terms: list[Expr] = [value]  # of a pending sum
        for link in reversed(spine):
            if isinstance(link.op, ast.Add | ast.Sub):
                right = self.read(link.right)
                if isinstance(link.op, ast.Sub):
                    right = ex.negative(right)
                self._addable(terms, right, link)
                terms.append(right)
                continue
            terms = [self._binary(link, ex.add(*terms))]
        return ex.add(*terms)

    def _addable(self, terms: list[Expr], right: Expr, link: ast.BinOp) -> None:
        left = next((t for t in terms if not ex.is_zero_literal(t)), None)
        if left is None or ex.is_zero_literal(right) or ex.fits(left, right):
            return
        what = "add" if isinstance(link.op, ast.Add) else "subtract"
        raise ShapeError(
            f"cannot {what} {_short(ast.unparse(link.left))} ({left.rows} x {left.cols}) and "
            f"{_short(ast.unparse(link.right))} ({right.rows} x {right.cols}): "
            "the shapes differ (there is no broadcasting)"
        )

    def _binary(self, link: ast.BinOp, left: Expr) -> Expr:
        match link.op:
            case ast.MatMult():
                return ex.matmul(left, self.read(link.right))
            case ast.Mult():
                return ex.multiply(left, self.read(link.right))
            case ast.Div():
                return ex.multiply(ex.reciprocal(self.read(link.right)), left)
            case ast.Pow():
                return ex.power(left, self._exponent(link.right))
            case ast.BitXor():
                self.fail("^ is not in the language: write X.T for a transpose, ** for a power")
            case op:
                self.fail(
                    f"the operator {type(op).__name__} is not in the language "
                    "(there are + - * / @ **)"
                )

    def _exponent(self, node: ast.expr) -> int:
        value = self.read(node)
        if (
            value.op != "number"
            or not isinstance(value.data, Fraction)
            or value.data.denominator != 1
        ):
            self.fail(f"the exponent {_short(ast.unparse(node))} is not an integer")
        if abs(value.data) > 64:
            self.fail(f"the exponent {value.data} is too large; at most 64")
        return int(value.data)

    def _call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            self.fail(
                f"{_short(ast.unparse(node.func))} cannot be called; "
                f"functions: {', '.join(FUNCTIONS)}"
            )
        name = node.func.id
        if node.keywords:
            self.fail(f"{name} takes no keyword arguments")
        args = node.args
        if name in _ONE_ARGUMENT:
            self._count(name, args, 1)
            self._needs_flow(name)
            return _ONE_ARGUMENT[name](self.read(args[0]))
        if name in _TWO_ARGUMENTS:
            self._count(name, args, 2)
            return _TWO_ARGUMENTS[name](self.read(args[0]), self.read(args[1]))
        if name in _THREE_ARGUMENTS:
            self._count(name, args, 3)
            return _THREE_ARGUMENTS[name](*map(self.read, args))
        if name in _MANY_ARGUMENTS:
            least, combine = _MANY_ARGUMENTS[name]
            most = 3 if name == "contract" else max(least, len(args))
            if not least <= len(args) <= most:
                self._count(name, args, least)
            return combine(*map(self.read, args))
        if name in self.scope.setting.functions:
            self._count(name, args, 1)
            return ex.apply(*self.scope.setting.functions[name], self.read(args[0]))
        if name in _SHAPED:
            count, make = _SHAPED[name]
            self._count(name, args, count)
            return make(*(self._dim(arg, name) for arg in args))
        known = ", ".join((*FUNCTIONS, *self.scope.setting.functions))
        self.fail(f"unknown function {name!r}; functions: {known}")

    def _needs_flow(self, name: str) -> None:
        if name == "d" and not self.scope.moving:
            self.fail(
                "d(...) needs a flow: give [flow] with loss and variables, or [flow.velocity]"
            )
        if name == "after" and not self.scope.stepping:
            self.fail("after(...) needs a step: give [step.update]")

    def _count(self, name: str, args: list[ast.expr], count: int) -> None:
        if len(args) != count or any(isinstance(arg, ast.Starred) for arg in args):
            self.fail(f"{name} takes {count} argument{'s' if count > 1 else ''}, {len(args)} came")

    def _dim(self, node: ast.expr, name: str) -> Dim:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                if value < 1:
                    self.fail(f"{name}({value}): a dimension is a positive integer or a symbol")
                return value
            case ast.Name(id=dim):
                setting = self.scope.setting
                if dim in setting.matrices or dim in setting.scalars or dim in self.scope.defined:
                    self.fail(f"{name}({dim}): {dim} is a matrix or a scalar, not a dimension")
                return dim
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return dims.multiply(self._dim(left, name), self._dim(right, name))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return dims.add(self._dim(left, name), self._dim(right, name))
            case _:
                self.fail(
                    f"{name}({_short(ast.unparse(node))}): "
                    "a dimension is a positive integer or a symbol"
                )
