"""Matrix expressions as polynomials in SymPy's noncommutative symbols.

Where SymPy's matrix expressions do not cancel, its noncommutative symbols often do: each matrix
and its transpose is a letter, a product is a word, a trace is a commuting symbol that is named by
its word up to rotation and transposition. What is no product (elementwise, diagonal parts, opaque
functions) is one letter, named by its expanded form.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import sympy as _sympy
from sympy.matrices import expressions as _expressions

from judges.answer import CannotExpressError

# SymPy carries no usable types for its matrix expressions: `Any` stands for one, and for the
# modules that make them.
sympy: Any = _sympy
mx: Any = _expressions

Word = tuple[str, ...]


class Words:
    """Reads the expressions of one claim.

    Args:
        kinds: declared kinds of each matrix.
    """

    def __init__(self, kinds: Mapping[str, frozenset[str]]) -> None:
        self.kinds = kinds
        self.turned: dict[str, str] = {}
        self.narrow: dict[str, tuple[bool, bool]] = {}  # one row, one column
        self.cancel: set[tuple[str, str]] = set()
        self.skew = {name for name, many in kinds.items() if "skew" in many}

    def is_zero(self, difference: Any) -> bool:
        """Whether a matrix or a scalar is 0 in noncommutative symbols."""
        if getattr(difference, "is_Matrix", False):
            return self.normal(self.matrix(difference)) == 0
        return sympy.simplify(self.scalar(difference).expand()) == 0

    # --- letters ----------------------------------------------------------------------------------

    def letter(self, name: str, shape: tuple[Any, Any], turned: str) -> Any:
        """A noncommutative symbol, with the name of its transpose."""
        rows, cols = shape
        self.turned[name], self.turned[turned] = turned, name
        self.narrow[name], self.narrow[turned] = (rows == 1, cols == 1), (cols == 1, rows == 1)
        return sympy.Symbol(name, commutative=False)

    def symbol(self, node: Any) -> Any:
        """A declared matrix, with its kinds."""
        name, kinds = node.name, self.kinds.get(node.name, frozenset())
        inverse = f"{name}^-1"
        if kinds & {"orthogonal"}:
            self.cancel |= {(name, inverse), (inverse, name)}
            return self.letter(name, node.shape, name if "symmetric" in kinds else inverse)
        if kinds & {"orthonormal"}:
            self.cancel.add((f"{name}^T", name))
        same = bool(kinds & {"symmetric", "diagonal", "skew"})
        return self.letter(name, node.shape, name if same else f"{name}^T")

    def inverse(self, node: Any) -> Any:
        """The inverse of a declared matrix."""
        if not isinstance(node, mx.MatrixSymbol):
            raise CannotExpressError("the inverse of an expression")
        name, kinds = node.name, self.kinds.get(node.name, frozenset())
        inverse, turned = f"{name}^-1", f"{name}^-T"
        self.symbol(node)
        self.cancel |= {(name, inverse), (inverse, name)}
        if kinds & {"orthogonal"}:
            return self.letter(inverse, node.shape, self.turned[name] and name)
        if kinds & {"symmetric", "diagonal"}:
            return self.letter(inverse, node.shape, inverse)
        self.cancel |= {(f"{name}^T", turned), (turned, f"{name}^T")}
        return self.letter(inverse, node.shape, turned)

    def elementwise(self, factors: list[Any]) -> Any:
        """An elementwise product: multilinear, and each of its terms one letter."""
        total = sympy.Integer(0)
        for terms in itertools.product(*(mx.MatAdd.make_args(factor) for factor in factors)):
            scalars, matrices = zip(*(term.as_coeff_mmul() for term in terms), strict=True)
            shape = matrices[0].shape
            name = " * ".join(sorted(map(str, matrices)))
            turned = " * ".join(sorted(str(matrix.T.doit()) for matrix in matrices))
            total += sympy.Mul(*map(self.scalar, scalars)) * self.letter(name, shape, turned)
        return total

    def opaque(self, node: Any) -> Any:
        """One letter for what is no product."""
        node = node.func(*(a.doit().expand().doit() if a.is_Matrix else a for a in node.args))
        name = str(node)
        same = isinstance(node, mx.DiagMatrix | mx.DiagonalMatrix)
        return self.letter(name, node.shape, name if same else str(node.T.doit()))

    # --- expressions ------------------------------------------------------------------------------

    def matrix(self, node: Any) -> Any:
        """A matrix expression as a noncommutative polynomial."""
        match node:
            case mx.MatrixSymbol():
                return self.symbol(node)
            case sympy.MatAdd():
                return sympy.Add(*map(self.matrix, node.args))
            case sympy.MatMul():
                parts = [self.matrix(a) if a.is_Matrix else self.scalar(a) for a in node.args]
                return sympy.Mul(*parts)
            case mx.Transpose():
                return self.transposed(self.matrix(node.arg))
            case mx.Inverse():
                return self.inverse(node.arg)
            case sympy.MatPow() if node.exp.is_Integer and node.exp > 0:
                return self.matrix(node.base) ** node.exp
            case mx.Identity():
                return sympy.Integer(1)
            case mx.ZeroMatrix():
                return sympy.Integer(0)
            case mx.OneMatrix():
                rows, cols = node.shape
                return self.letter(f"1[{rows},{cols}]", node.shape, f"1[{cols},{rows}]")
            case mx.HadamardProduct():
                return self.elementwise([arg.doit().expand().doit() for arg in node.args])
            case mx.HadamardPower() if node.exp.is_Integer and node.exp > 0:
                return self.elementwise([node.base.doit().expand().doit()] * int(node.exp))
            case _:
                return self.opaque(node)

    def scalar(self, node: Any) -> Any:
        """A scalar expression, its traces as commuting symbols."""
        if isinstance(node, mx.Trace):
            return self.traced(self.matrix(node.arg), node.arg.shape[0])
        if not node.args:
            return node
        return node.func(*map(self.scalar, node.args))

    # --- words ------------------------------------------------------------------------------------

    def terms(self, polynomial: Any) -> list[tuple[Any, Word]]:
        """Coefficients and words of a polynomial, adjacent inverses cancelled."""
        found: list[tuple[Any, Word]] = []
        for term in sympy.Add.make_args(sympy.expand(polynomial)):
            commuting, rest = term.args_cnc()
            word: list[str] = []
            for factor in rest:
                base, exponent = factor.as_base_exp()
                for _ in range(int(exponent)):
                    if word and (word[-1], base.name) in self.cancel:
                        word.pop()
                    else:
                        word.append(base.name)
            found.append((sympy.Mul(*commuting), tuple(word)))
        return found

    def transposed(self, polynomial: Any) -> Any:
        """Words backwards, letters transposed."""
        return sympy.Add(
            *(
                c * self.sign(word) * self.spelled(self.turn(word))
                for c, word in self.terms(polynomial)
            )
        )

    def turn(self, word: Word) -> Word:
        """A word's transpose, up to its sign."""
        return tuple(self.turned[name] for name in reversed(word))

    def sign(self, word: Word) -> int:
        """The sign that a word takes on when transposed: one for each skew letter."""
        return -1 if sum(name in self.skew for name in word) % 2 else 1

    def named(self, signed: list[tuple[Word, int]]) -> Any:
        """The commuting symbol of a number that is spelled in several ways, each with its sign."""
        word, sign = min(signed)
        if (word, -sign) in signed:
            return sympy.Integer(0)
        return sign * sympy.Symbol("tr " + " ".join(word))

    def spelled(self, word: Word) -> Any:
        """A word as a product."""
        return sympy.Mul(*(sympy.Symbol(name, commutative=False) for name in word))

    def traced(self, polynomial: Any, dimension: Any) -> Any:
        """The trace of a polynomial."""
        return sympy.Add(
            *(
                c * self.cyclic(word) if word else c * dimension
                for c, word in self.terms(polynomial)
            )
        )

    def cyclic(self, word: Word) -> Any:
        """A commuting symbol for a trace, the same for all that equal it; closed parts apart."""
        while len(word) > 1 and (word[-1], word[0]) in self.cancel:
            word = word[1:-1]
        for start, name in enumerate(word):
            if self.narrow[name][0]:  # cut where a row begins, and a scalar ends
                word = word[start:] + word[:start]
                product, rest = self.closed(word)
                if not rest:
                    return product
                break
        both = ((word, 1), (self.turn(word), self.sign(word)))
        return self.named([(w[i:] + w[:i], sign) for w, sign in both for i in range(len(w))])

    def closed(self, word: Word) -> tuple[Any, Word]:
        """The scalars in a word (from a row to the next column), and what is left."""
        product, rest, start = sympy.Integer(1), list[str](), None
        for name in word:
            rest.append(name)
            row, column = self.narrow[name]
            if row:
                start = len(rest) - 1
            if column and start is not None:
                inside = tuple(rest[start:])
                product *= self.named([(inside, 1), (self.turn(inside), self.sign(inside))])
                del rest[start:]
                start = None
        return product, tuple(rest)

    def normal(self, polynomial: Any) -> Any:
        """The polynomial with closed parts as commuting symbols."""
        total = sympy.Integer(0)
        for coefficient, word in self.terms(polynomial):
            product, rest = self.closed(word)
            total += coefficient * product * self.spelled(rest)
        return sympy.expand(total)
