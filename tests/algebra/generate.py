"""Random typed expressions of the claim-file language.

Expressions are trees of `Node`s with shapes; `text` writes one through Python's own `ast`, so that
what is tested is the language as a user writes it. A dimension is a string: a symbol, "1", a
product "n*r" (slowest first, as in the language) or a sum "m+n".
"""

from __future__ import annotations

import ast
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

SHAPES: dict[str, tuple[str, str]] = {
    "A": ("m", "n"),
    "B": ("m", "n"),
    "W": ("n", "r"),
    "V": ("m", "r"),
    "X": ("n", "n"),
    "Y": ("n", "n"),
    "S": ("n", "n"),
    "K": ("n", "n"),
    "L": ("n", "n"),
    "M": ("n", "n"),
    "O": ("n", "n"),
    "G": ("n", "n"),
    "P": ("m", "r"),
    "Z": ("r", "r"),
    "x": ("n", "1"),
    "y": ("n", "1"),
    "u": ("m", "1"),
}
MORE_SHAPES: dict[str, tuple[str, str]] = {
    "C": ("m", "n"),
    "U": ("m", "r"),
    **dict.fromkeys(("Q", "R", "E", "F", "H", "J", "N", "I", "OO", "DS", "DSI"), ("n", "n")),
}
"""Constants and combinations of kinds, for the wide language only."""

ALL_SHAPES = SHAPES | MORE_SHAPES
KINDS: dict[str, tuple[str, ...]] = {
    "S": ("symmetric",),
    "K": ("skew",),
    "L": ("diagonal",),
    "M": ("diagonal",),
    "O": ("orthogonal",),
    "G": ("invertible",),
    "P": ("orthonormal",),
    "Z": ("symmetric",),
    "C": ("constant",),
    "U": ("constant", "orthonormal"),
    "Q": ("constant", "symmetric"),
    "R": ("invertible", "symmetric"),
    "E": ("invertible", "skew"),
    "F": ("diagonal", "invertible"),
    "H": ("orthogonal", "symmetric"),
    "J": ("diagonal", "orthogonal"),
    "N": ("orthogonal", "skew"),
    "I": ("invertible", "orthogonal"),
    "OO": ("orthonormal", "symmetric"),
    "DS": ("diagonal", "symmetric"),
    "DSI": ("diagonal", "invertible", "symmetric"),
}


def named(kinds: tuple[str, ...]) -> str:
    """A kind, or a combination, as a feature: "kind skew" is a matrix, "skew" the function."""
    return "kind " + " and ".join(kinds)


def of_kinds(kinds: tuple[str, ...]) -> set[str]:
    """Each kind, and the combination."""
    return {named((kind,)) for kind in kinds} | {named(kinds)}


EVEN = ("E", "N")
"""Skew and invertible: of even size."""

INVERTIBLE = tuple(s for s, kinds in KINDS.items() if {"invertible", "orthogonal"} & {*kinds})
SCALARS = ("a", "b")
VELOCITY = {"X": "Y @ X - X.T", "A": "2 * A @ S - B", "x": "X @ x", "W": "K @ W", "b": "a * b"}
UPDATE = {"X": "X - a * Y @ X", "A": "A + B * A", "x": "x - y", "a": "a + 1"}
DIMS = ("m", "n", "r")
CALCULUS = ("D", "grad", "d", "after")
VARIABLES = ("A", "X", "W", "x", "S", "a")
_OF_SIZE = {"m": "u", "n": "x", "r": "W"}


def claim_file(left: str, right: str, name: str = "c") -> str:
    """A claim file that declares what the two sides use, moving matrices included."""
    says = f"{left} == {right}"
    flow, step = _moving(r"\bd\(", VELOCITY, says), _moving(r"\bafter\(", UPDATE, says)
    used = _names(says, *flow.values(), *step.values(), *flow, *step)
    declared = {s: shape for s, shape in ALL_SHAPES.items() if s in used}
    bare = {d for d in DIMS if d in used} - {d for shape in declared.values() for d in shape}
    declared |= {_OF_SIZE[d]: ALL_SHAPES[_OF_SIZE[d]] for d in bare}
    lines = ["[matrices]"]
    lines += [
        f"{s} = [{', '.join(d if d.isdigit() else repr(d) for d in shape)}]"
        for s, shape in declared.items()
    ]
    lines += ["[kinds]"]
    lines += [f"{s} = {json.dumps(kinds)}" for s, kinds in KINDS.items() if s in declared]
    lines += ["[scalars]", *(f"{s} = {{}}" for s in SCALARS)]
    if used & {"phi", "dphi", "ddphi"}:
        lines += ["[functions]", "phi = {}"]
    for section, table in (("flow.velocity", flow), ("step.update", step)):
        lines += [f"[{section}]", *(f'{k} = "{v}"' for k, v in table.items())] if table else []
    return "\n".join([*lines, "", "[[claim]]", f'id = "{name}"', f'says = "{says}"', ""])


def _names(*texts: str) -> set[str]:
    return {found for text in texts for found in re.findall(r"[^\W\d]\w*", text)}


def _moving(operator: str, table: dict[str, str], says: str) -> dict[str, str]:
    """Motions of the matrices that a text mentions, and of those that these motions mention."""
    if not re.search(operator, says):
        return {}
    found: dict[str, str] = {}
    used = _names(says)
    while missing := [s for s in table if s in used and s not in found]:
        found |= {s: table[s] for s in missing}
        used |= _names(*found.values())
    return found or {s: v for s, v in table.items() if s in SCALARS}


# --- dimensions -----------------------------------------------------------------------------------


def times_dim(*dims: str) -> str:
    return "*".join(d for d in dims if d != "1") or "1"


def plus_dim(*dims: str) -> str:
    return "+".join(dims)


def plain(dim: str) -> bool:
    """Whether this is a symbol or 1."""
    return "*" not in dim and "+" not in dim


def pair(dim: str, sign: str) -> tuple[str, str] | None:
    """The two parts of a sum or product of two plain dimensions."""
    parts = dim.split(sign)
    return (parts[0], parts[1]) if len(parts) == 2 and all(map(plain, parts)) else None


@dataclass(frozen=True)
class Node:
    """An operation, its arguments, data (a name, a number, sizes), and the shape of the value."""

    op: str
    args: tuple[Node, ...]
    data: object
    rows: str
    cols: str

    @property
    def shape(self) -> tuple[str, str]:
        return self.rows, self.cols

    @property
    def scalar(self) -> bool:
        return self.shape == ("1", "1")


# --- making nodes ---------------------------------------------------------------------------------


def name(symbol: str) -> Node:
    rows, cols = ALL_SHAPES.get(symbol, ("1", "1"))
    return Node("name", (), symbol, rows, cols)


def num(value: int | Fraction) -> Node:
    return Node("num", (), Fraction(value), "1", "1")


def dim(symbol: str) -> Node:
    return num(1) if symbol == "1" else Node("name", (), symbol, "1", "1")


def eye(n: str) -> Node:
    return Node("eye", (), None, n, n)


def ones(m: str, n: str) -> Node:
    return Node("ones", (), None, m, n)


def zeros(m: str, n: str) -> Node:
    return Node("zeros", (), None, m, n)


def mm(a: Node, b: Node) -> Node:
    assert a.cols == b.rows
    return Node("mm", (a, b), None, a.rows, b.cols)


def add(a: Node, b: Node) -> Node:
    assert a.shape == b.shape
    return Node("add", (a, b), None, *a.shape)


def sub(a: Node, b: Node) -> Node:
    assert a.shape == b.shape
    return Node("sub", (a, b), None, *a.shape)


def mul(a: Node, b: Node) -> Node:
    assert a.shape == b.shape or a.scalar or b.scalar
    return Node("mul", (a, b), None, *(b.shape if a.scalar else a.shape))


def div(a: Node, b: Node) -> Node:
    return Node("div", (a, b), None, *a.shape)


def neg(a: Node) -> Node:
    return Node("neg", (a,), None, *a.shape)


def power(a: Node, k: int) -> Node:
    return Node("pow", (a,), k, *a.shape)


def turn(a: Node) -> Node:
    return Node("T", (a,), None, a.cols, a.rows)


def to_scalar(function: str, *args: Node) -> Node:
    return Node(function, args, None, "1", "1")


def square(function: str, a: Node) -> Node:
    """diag of a column; diagpart, sym, skew, inv of a square matrix."""
    return Node(function, (a,), None, a.rows, a.rows)


def alike(function: str, a: Node) -> Node:
    """An opaque function, or a sign, of the same shape."""
    return Node(function, (a,), None, *a.shape)


def kron(a: Node, b: Node) -> Node:
    return Node("kron", (a, b), None, times_dim(a.rows, b.rows), times_dim(a.cols, b.cols))


def face(a: Node, b: Node) -> Node:
    assert a.rows == b.rows
    return Node("face_splitting", (a, b), None, a.rows, times_dim(a.cols, b.cols))


def vec(a: Node) -> Node:
    return Node("vec", (a,), None, times_dim(a.cols, a.rows), "1")


def hstack(*parts: Node) -> Node:
    assert len({part.rows for part in parts}) == 1
    return Node("hstack", parts, None, parts[0].rows, plus_dim(*(part.cols for part in parts)))


def vstack(*parts: Node) -> Node:
    assert len({part.cols for part in parts}) == 1
    return Node("vstack", parts, None, plus_dim(*(part.rows for part in parts)), parts[0].cols)


def blkdiag(a: Node, b: Node) -> Node:
    return Node("blkdiag", (a, b), None, plus_dim(a.rows, b.rows), plus_dim(a.cols, b.cols))


def tensor(p: Node, w: Node, v: Node) -> Node:
    assert p.cols == w.rows == v.rows
    return Node("tensor", (p, w, v), None, p.rows, times_dim(w.cols, v.cols))


def contract(t: Node, *vectors: Node) -> Node:
    """Over j, or over i and j, of columns (i, j)."""
    if len(vectors) == 2:
        assert t.cols == times_dim(vectors[0].rows, vectors[1].rows)
        return Node("contract", (t, *vectors), None, t.rows, "1")
    both = pair(t.cols, "*")
    assert both is not None
    assert both[1] == vectors[0].rows
    return Node("contract", (t, *vectors), None, t.rows, both[0])


def mean(f: Node, v: str) -> Node:
    return Node("expect", (f,), v, *f.shape)


def grad(f: Node, v: str) -> Node:
    return Node("grad", (f,), v, *name(v).shape)


def directional(f: Node, v: str, h: Node) -> Node:
    return Node("D", (f, h), v, *f.shape)


def along(op: str, f: Node) -> Node:
    """d or after."""
    return Node(op, (f,), None, *f.shape)


# --- text -----------------------------------------------------------------------------------------

_OPERATORS: dict[str, ast.operator] = {
    "mm": ast.MatMult(),
    "add": ast.Add(),
    "sub": ast.Sub(),
    "mul": ast.Mult(),
    "div": ast.Div(),
}


def text(node: Node) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Expression(_tree(node))))


def _tree(node: Node) -> ast.expr:
    args = [_tree(arg) for arg in node.args]
    match node.op:
        case "name":
            return ast.Name(str(node.data), ast.Load())
        case "num":
            assert isinstance(node.data, Fraction)
            return ast.parse(str(node.data), mode="eval").body
        case "mm" | "add" | "sub" | "mul" | "div":
            return ast.BinOp(args[0], _OPERATORS[node.op], args[1])
        case "pow":
            return ast.BinOp(args[0], ast.Pow(), ast.Constant(int(str(node.data))))
        case "neg" | "pos":
            return ast.UnaryOp(ast.USub() if node.op == "neg" else ast.UAdd(), args[0])
        case "T":
            return ast.Attribute(args[0], "T", ast.Load())
        case "eye":
            return ast.parse(f"eye({node.rows})", mode="eval").body
        case "ones" | "zeros":
            return ast.parse(f"{node.op}({node.rows}, {node.cols})", mode="eval").body
        case "grad" | "D" | "expect":
            args.insert(1, ast.Name(str(node.data), ast.Load()))
            return ast.Call(ast.Name(node.op, ast.Load()), args, [])
        case function:
            return ast.Call(ast.Name(function, ast.Load()), args, [])


def walk(node: Node) -> Iterator[Node]:
    yield node
    for arg in node.args:
        yield from walk(arg)


def size(node: Node) -> int:
    return sum(1 for _ in walk(node))


def degree(node: Node) -> int:
    """Number of matrices in the longest product, derivatives, means and scalars left aside."""
    below = [degree(arg) for arg in node.args]
    match node.op:
        case "name":
            return int(str(node.data) in ALL_SHAPES)
        case "mm" | "mul" | "inner" | "kron" | "face_splitting" | "tensor" | "contract":
            return sum(below)
        case "norm2":
            return 2 * below[0]
        case "pow":
            assert isinstance(node.data, int)
            return max(node.data, 0) * below[0]
        case "phi" | "dphi":
            return 1  # one factor of a term, whatever stands inside
        case _:
            return max(below, default=0)


def features(node: Node) -> set[str]:
    """Operators and kinds that occur."""
    found: set[str] = set()
    for part in walk(node):
        found.add(part.op)
        if part.op == "mul":
            found.add("scale" if part.args[0].scalar or part.args[1].scalar else "hadamard")
        if part.op == "pow":
            found.add("negative power" if int(str(part.data)) < 0 else "positive power")
        if part.op == "name" and str(part.data) in ALL_SHAPES:
            kinds = KINDS.get(str(part.data), ("general",))
            found |= of_kinds(kinds)
        if part.op == "name" and str(part.data) in SCALARS:
            found.add("scalar")
        if part.op == "name" and str(part.data) in DIMS:
            found.add("dimension")
    return found


# --- summed indices -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """The factors at the row and the column index of a term.

    Attributes:
        rows: the factors that the row index stands in.
        cols: the same for the column index; the same set where the two are one index.
        one: whether row and column are one index.
        shared: whether some summed index stands in more than two factors.
    """

    rows: frozenset[object] = frozenset()
    cols: frozenset[object] = frozenset()
    one: bool = False
    shared: bool = False


MOST_TERMS = 24
"""Terms looked at, at each operation; more are left aside."""


def shared(node: Node) -> bool:
    """Whether some summed index stands in more than two factors."""
    return any(term.shared for term in terms(node))


def terms(node: Node) -> list[Term]:
    """Terms of an expression, some of them left aside: what is found shared is.

    Nothing is claimed of what is below a derivative, nor of the indices that Kronecker products and
    blocks are made of.
    """
    fresh = itertools.count()

    def of(part: Node) -> list[Term]:
        if part.op in ("grad", "D", "d", "expect"):
            return [Term()]
        below = [of(arg)[:MOST_TERMS] for arg in part.args]
        return _terms(part, below, fresh)[:MOST_TERMS]

    return of(node)


def _terms(node: Node, below: list[list[Term]], fresh: Iterator[int]) -> list[Term]:
    match node.op:
        case "name" | "inv":
            symbol = node.args[0].data if node.op == "inv" else node.data
            if symbol not in ALL_SHAPES:
                return [Term()]
            factor = frozenset([next(fresh)])
            return [Term(factor, factor, "diagonal" in KINDS.get(str(symbol), ()))]
        case "phi" | "dphi":
            factor = frozenset([next(fresh)])
            return [Term(factor, factor)]
        case "zeros":
            return []
        case "eye":
            return [Term(one=True)]
        case "T":
            return [Term(t.cols, t.rows, t.one, t.shared) for t in below[0]]
        case "add" | "sub":
            return below[0][: MOST_TERMS // 2] + below[1]
        case "mul" if node.args[0].scalar or node.args[1].scalar:
            scaling, scaled = below if node.args[0].scalar else reversed(below)
            return [
                Term(t.rows, t.cols, t.one, t.shared or s.shared) for s in scaling for t in scaled
            ]
        case "mul":
            return [_entrywise(a, b) for a in below[0] for b in below[1]]
        case "pow":
            result = [Term()]
            for k in range(max(int(str(node.data)), 0)):
                copies = [_copy(t, k) for t in below[0]]
                result = [_entrywise(a, b) for a in result for b in copies][:MOST_TERMS]
            return result
        case "norm2":
            pairs = [_entrywise(a, _copy(b, "again")) for a in below[0] for b in below[0]]
            return [_summed(t, node.args[0]) for t in pairs]
        case "inner":
            pairs = [_entrywise(a, b) for a in below[0] for b in below[1]]
            return [_summed(t, node.args[0]) for t in pairs]
        case "sum":
            return [_summed(t, node.args[0]) for t in below[0]]
        case "tr":
            met = [_entrywise(t, Term(one=True)) for t in below[0]]
            return [_summed(t, node.args[0]) for t in met]
        case "diag":
            return [Term(t.rows, t.rows, True, t.shared) for t in below[0]]
        case "diagpart":
            return [_entrywise(t, Term(one=True)) for t in below[0]]
        case "mm":
            inner = node.args[0].cols
            return [_product(a, b, inner) for a in below[0] for b in below[1]]
        case "face_splitting":
            return [_face(a, b) for a in below[0] for b in below[1]]
        case "tensor":
            faces = [_face(w, v) for w in below[1] for v in below[2]]
            return [_product(p, f, node.args[0].cols) for p in below[0] for f in faces]
        case "neg" | "pos" | "sym" | "skew" | "div" | "after":
            return below[0]
        case _:
            widely = any(t.shared for part in below for t in part)
            return [Term(shared=widely)] if all(below) or not below else []


def _copy(term: Term, number: object) -> Term:
    """The same with other factors."""
    rows = frozenset((number, factor) for factor in term.rows)
    cols = frozenset((number, factor) for factor in term.cols)
    return Term(rows, cols, term.one, term.shared)


def _entrywise(a: Term, b: Term) -> Term:
    rows, cols, one = a.rows | b.rows, a.cols | b.cols, a.one or b.one
    rows, cols = (rows | cols, rows | cols) if one else (rows, cols)
    return Term(rows, cols, one, a.shared or b.shared)


def _product(a: Term, b: Term, dim: str) -> Term:
    widely = a.shared or b.shared
    middle = a.cols | b.rows
    if a.one and b.one:
        return Term(middle, middle, True, widely)
    if a.one:
        return Term(middle, b.cols, False, widely)
    if b.one:
        return Term(a.rows, middle, False, widely)
    return Term(a.rows, b.cols, False, widely or (plain(dim) and dim != "1" and len(middle) > 2))


def _face(a: Term, b: Term) -> Term:
    return Term(a.rows | b.rows, frozenset(), False, a.shared or b.shared)


def _summed(term: Term, matrix: Node) -> Term:
    """The sum over both indices."""
    many = any(
        plain(dim) and dim != "1" and len(factors) > 2
        for dim, factors in ((matrix.rows, term.rows), (matrix.cols, term.cols))
    )
    return Term(shared=term.shared or many)


# --- drawing --------------------------------------------------------------------------------------

SCALAR_SIZES = ("m", "n", "n", "r")
INNER = ("m", "n", "n", "r", "1")
PRODUCTS = ("n*r", "m*n", "r*r", "n*n")
SUMS = ("m+n", "n+r", "n+1", "n+n")
MULTILINEAR = ("kron", "vec", "face_splitting", "tensor", "contract")
BLOCKS = ("hstack", "vstack", "blkdiag")
Rules = list[tuple[str, Callable[[], Node]]]


@cache
def leaves(rows: str, cols: str, wide: bool) -> list[Node]:
    """Single matrices of a shape, and transposes."""
    symbols = ALL_SHAPES if wide else SHAPES
    options = [name(s) for s, shape in symbols.items() if shape == (rows, cols)]
    options += [turn(name(s)) for s, shape in symbols.items() if shape == (cols, rows)]
    if rows == cols != "1":
        options += [eye(rows), square("inv", name("G"))] if rows == "n" else [eye(rows)]
    return options


class Draw:
    """Draws expressions.

    Args:
        rng: source of randomness.
        wanted: an operator or kind to favour; None for the narrow language, which has neither
            combinations of kinds nor opaque functions, Kronecker products and blocks.
    """

    def __init__(self, rng: random.Random, wanted: str | None = None) -> None:
        self.rng = rng
        self.wanted = wanted
        self.wide = wanted is not None
        self.sums = 2
        self.applied = 1
        self.inverted = 1.0 if wanted == "inv" else 0.3
        self.favoured = [s for s, kinds in KINDS.items() if wanted in of_kinds(kinds)]
        if wanted == "inv":
            self.favoured = [*INVERTIBLE]

    def split(self, degree: int) -> tuple[int, int]:
        first = self.rng.randint(1, degree - 1) if degree > 1 else self.rng.randint(0, 1)
        return first, degree - first

    def size(self, simple: tuple[str, ...]) -> str:
        """A dimension; products and sums now and then."""
        if self.wide:
            roll = self.rng.random()
            if roll < (0.5 if self.wanted in MULTILINEAR else 0.04):
                return self.rng.choice(PRODUCTS)
            if roll < (0.5 if self.wanted in BLOCKS else 0.08):
                return self.rng.choice(SUMS)
        return self.rng.choice(simple)

    def choose(self, rules: Rules) -> Node:
        """By one of the rules, the wanted one preferred."""
        wanted = [make for rule, make in rules if rule == self.wanted]
        if wanted and self.rng.random() < 0.4:
            return self.rng.choice(wanted)()
        return self.rng.choice(rules)[1]()

    # --- single matrices ----------------------------------------------------------------------

    def leaf(self, rows: str, cols: str) -> Node:
        if not (plain(rows) and plain(cols)):
            return ones(rows, cols)
        fitting = [s for s in self.favoured if ALL_SHAPES.get(s, ("1", "1")) == (rows, cols)]
        if fitting and self.rng.random() < 0.4:
            favoured = self.rng.choice(fitting)
            inverted = favoured in INVERTIBLE and self.rng.random() < self.inverted
            return square("inv", name(favoured)) if inverted else name(favoured)
        options = leaves(rows, cols, self.wide)
        if rows == cols == "1":
            options = [name(s) for s in SCALARS] + [to_scalar("tr", name(s)) for s in "XSLZ"]
            options += [num(2), dim(self.rng.choice(DIMS))]
            if self.wide:
                options.append(power(name(self.rng.choice(SCALARS)), -self.rng.randint(1, 2)))
        if not options or self.rng.random() < (0.3 if self.wanted == "ones" else 0.05):
            options = [ones(rows, cols)]
        if self.wanted == "eye" and rows == cols and self.rng.random() < 0.3:
            return eye(rows)
        if self.wide and self.rng.random() < (0.2 if self.wanted == "zeros" else 0.01):
            return zeros(rows, cols)
        return self.rng.choice(options)

    def _applied(self, rows: str, cols: str, degree: int) -> Node:
        self.applied -= 1
        either = self.rng.choice(("phi", "phi", "dphi"))
        function = self.wanted if self.wanted in ("phi", "dphi") else either
        return alike(function, self.matrix(rows, cols, min(degree, self.rng.randint(1, 2))))

    # --- operations ---------------------------------------------------------------------------

    def matrix(self, rows: str, cols: str, degree: int) -> Node:
        """An expression of that shape and about that degree."""
        composite = not (plain(rows) and plain(cols))
        if degree <= 1 and self.wide and self.applied > 0 and not composite:
            if self.rng.random() < (0.4 if self.wanted in ("phi", "dphi") else 0.02):
                return self._applied(rows, cols, degree)
        if composite:
            return self._composite(rows, cols, degree)
        if degree <= 1:
            return self.leaf(rows, cols)
        scalar = rows == cols == "1"
        rules = self._of_scalars(degree) if scalar else self._of_matrices(rows, cols, degree)
        if self.wide:
            rules += self._wide(rows, cols, degree)
        return self.choose(rules)

    def _of_scalars(self, degree: int) -> Rules:
        return [
            ("tr", lambda: self._trace(degree)),
            ("tr", lambda: self._trace(degree)),
            ("norm2", lambda: self._norm2(degree)),
            ("inner", lambda: self._inner(degree)),
            ("sum", lambda: self._total(degree)),
            ("mm", lambda: self._matmul("1", "1", degree)),
            ("add", lambda: self._sum("1", "1", degree)),
        ]

    def _of_matrices(self, rows: str, cols: str, degree: int) -> Rules:
        rules: Rules = [("mm", lambda: self._matmul(rows, cols, degree))] * 4
        rules += [
            ("hadamard", lambda: mul(*self._two((rows, cols), (rows, cols), degree))),
            ("scale", lambda: self._scale(rows, cols, degree)),
            ("T", lambda: turn(self.matrix(cols, rows, degree))),
        ]
        if self.sums > 0:
            rules += [("add", lambda: self._sum(rows, cols, degree))] * 2
        if degree % 2 == 0 and rows != "1":
            half = degree // 2
            rules.append(("positive power", lambda: power(self.matrix(rows, cols, half), 2)))
        if rows == cols:
            rules += [
                (op, lambda op=op: square(op, self.matrix(rows, cols, degree)))
                for op in ("diagpart", "sym", "skew")
            ]
            rules.append(("diag", lambda: square("diag", self.matrix(rows, "1", degree))))
        return rules

    def _wide(self, rows: str, cols: str, degree: int) -> Rules:
        """What is left of Kronecker products and tensors where the shape is a simple one."""
        rules: Rules = [
            ("kron", lambda: kron(*self._two(("1", cols), (rows, "1"), degree))),
            ("kron", lambda: kron(*self._two((rows, "1"), ("1", cols), degree))),
            ("face_splitting", lambda: face(*self._two((rows, "1"), (rows, cols), degree))),
        ]
        rules += [
            (op, lambda op=op: alike(op, self.matrix(rows, cols, degree))) for op in ("pos", "neg")
        ]
        rules.append(("blkdiag", lambda: self._among_blocks(rows, cols, degree)))
        if cols == "1":
            rules.append(("vec", lambda: vec(self.matrix("1", rows, degree))))
            rules.append(("contract", lambda: self._contract_both(rows, degree)))
        else:
            rules.append(("contract", lambda: self._contract(rows, cols, degree)))
        return rules if self.wanted in {rule for rule, _ in rules} else self.rng.sample(rules, 1)

    def _composite(self, rows: str, cols: str, degree: int) -> Node:
        """A shape with a product or a sum in it."""
        if not (plain(cols) and plain(rows)) and degree > 1 and self.rng.random() < 0.3:
            return self.choose(
                [
                    ("mm", lambda: self._matmul(rows, cols, degree)),
                    ("scale", lambda: self._scale(rows, cols, degree)),
                    ("hadamard", lambda: mul(*self._two((rows, cols), (rows, cols), degree))),
                ]
            )
        rules: Rules = []
        above, beside = pair(rows, "+"), pair(cols, "+")
        if above and beside:
            corners = (above[0], beside[0]), (above[1], beside[1])
            rules.append(("blkdiag", lambda: blkdiag(*self._blocks(*corners, degree))))
        if above:
            halves = (above[0], cols), (above[1], cols)
            rules.append(("vstack", lambda: vstack(*self._blocks(*halves, degree))))
        elif beside:
            sides = (rows, beside[0]), (rows, beside[1])
            rules.append(("hstack", lambda: hstack(*self._blocks(*sides, degree))))
        else:
            rules += self._product_rules(rows, cols, degree)
        return self.choose(rules) if rules else ones(rows, cols)

    def _product_rules(self, rows: str, cols: str, degree: int) -> Rules:
        """Rows, columns or both are a product."""
        rules: Rules = []
        (p, q), (c, d) = pair(rows, "*") or ("1", rows), pair(cols, "*") or ("1", cols)
        rules.append(("kron", lambda: kron(*self._two((p, c), (q, d), degree))))
        if cols == "1":
            rules.append(("vec", lambda: vec(self.matrix(q, p, degree))))
        if plain(rows):
            k = self.rng.choice(DIMS)
            rules.append(("face_splitting", lambda: face(*self._two((rows, c), (rows, d), degree))))
            rules.append(("tensor", lambda: self._tensor((rows, k), (k, c), (k, d), degree)))
        elif plain(cols):
            rules.append(("T", lambda: turn(self._composite(cols, rows, degree))))
        return rules

    def _two(self, one: tuple[str, str], other: tuple[str, str], degree: int) -> tuple[Node, Node]:
        """Two factors."""
        first, second = self.split(degree)
        return self.matrix(*one, first), self.matrix(*other, second)

    def _blocks(
        self, one: tuple[str, str], other: tuple[str, str], degree: int
    ) -> tuple[Node, Node]:
        """Two blocks, the first of the degree."""
        parts = self.matrix(*one, degree), self.matrix(*other, self.rng.randint(1, max(1, degree)))
        return parts

    def _among_blocks(self, rows: str, cols: str, degree: int) -> Node:
        """A block-diagonal matrix between two others."""
        first, rest = self.split(degree)
        second, third = self.split(rest)
        one, other = self.rng.choice(SUMS), self.rng.choice(SUMS)
        middle = self.matrix(one, other, second)
        return mm(self.matrix(rows, one, first), mm(middle, self.matrix(other, cols, third)))

    def _tensor(
        self, p: tuple[str, str], w: tuple[str, str], v: tuple[str, str], degree: int
    ) -> Node:
        first, rest = self.split(degree)
        second, third = self.split(rest)
        return tensor(self.matrix(*p, first), self.matrix(*w, second), self.matrix(*v, third))

    def _contract(self, rows: str, cols: str, degree: int) -> Node:
        j = self.rng.choice(DIMS)
        return contract(*self._two((rows, times_dim(cols, j)), (j, "1"), degree))

    def _contract_both(self, rows: str, degree: int) -> Node:
        i, j = self.rng.choice(DIMS), self.rng.choice(DIMS)
        first, rest = self.split(degree)
        second, third = self.split(rest)
        flattened = self.matrix(rows, times_dim(i, j), first)
        return contract(flattened, self.matrix(i, "1", second), self.matrix(j, "1", third))

    def _matmul(self, rows: str, cols: str, degree: int) -> Node:
        inner = self.size(INNER)
        return mm(*self._two((rows, inner), (inner, cols), degree))

    def _scale(self, rows: str, cols: str, degree: int) -> Node:
        if self.rng.random() < 0.5:
            factor = self.rng.choice([name("a"), name("b"), dim("n"), num(Fraction(3, 2)), num(-2)])
            if self.wanted == "dimension":
                factor = dim(self.rng.choice(DIMS))
            if self.wanted == "negative power":
                factor = power(name(self.rng.choice(SCALARS)), -self.rng.randint(1, 2))
            return mul(factor, self.matrix(rows, cols, degree))
        if self.rng.random() < 0.5:
            divisor = self.rng.choice([name("a"), dim("m"), add(name("a"), num(7)), num(3)])
            return div(self.matrix(rows, cols, degree), divisor)
        return mul(*self._two(("1", "1"), (rows, cols), degree))

    def _sum(self, rows: str, cols: str, degree: int) -> Node:
        self.sums -= 1
        make = self.rng.choice([add, sub])
        other = self.rng.randint(1, degree)
        return make(self.matrix(rows, cols, degree), self.matrix(rows, cols, other))

    def _trace(self, degree: int) -> Node:
        n = self.size(SCALAR_SIZES)
        return to_scalar("tr", self.matrix(n, n, degree))

    def _norm2(self, degree: int) -> Node:
        r, c = self.size(DIMS), self.rng.choice(DIMS)
        return to_scalar("norm2", self.matrix(r, c, max(1, degree // 2)))

    def _inner(self, degree: int) -> Node:
        shape = self.size(DIMS), self.rng.choice([*DIMS, "1"])
        return to_scalar("inner", *self._two(shape, shape, degree))

    def _total(self, degree: int) -> Node:
        r, c = self.size(DIMS), self.rng.choice([*DIMS, "1"])
        return to_scalar("sum", self.matrix(r, c, degree))

    # --- whole expressions --------------------------------------------------------------------

    def any(self, degree: int, calculus: str | None = None) -> Node:
        """An expression of any shape; with a derivative, step or mean on top if asked for."""
        shapes = [("1", "1"), ("m", "n"), ("n", "n"), ("n", "n"), ("n", "1"), ("n", "r")]
        if self.wide:
            shapes += [("n*r", "1"), ("m", "n*r"), ("m+n", "r")]
        rows, cols = self.rng.choice(shapes)
        if calculus is None:
            return self.matrix(rows, cols, degree)
        if calculus == "expect":
            return mean(self.containing("x", rows, cols, degree), "x")
        variable = self.rng.choice(VARIABLES)
        if calculus == "grad":
            return grad(self.containing(variable, "1", "1", degree), variable)
        if calculus == "D":
            direction = self.matrix(*name(variable).shape, self.rng.randint(1, 2))
            return directional(self.containing(variable, rows, cols, degree), variable, direction)
        moving = self.rng.choice(list(VELOCITY if calculus == "d" else UPDATE))
        return along(calculus, self.containing(moving, rows, cols, degree))

    def containing(self, symbol: str, rows: str, cols: str, degree: int) -> Node:
        """An expression in which a symbol occurs (or the last one tried)."""
        self.favoured.append(symbol)
        drawn = self.matrix(rows, cols, degree)
        for _ in range(30):
            if any(part.op == "name" and part.data == symbol for part in walk(drawn)):
                break
            drawn = self.matrix(rows, cols, degree)
        self.favoured.remove(symbol)
        return drawn
