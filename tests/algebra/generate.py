"""Random typed expressions of the claim-file language, true rewritings of them, and small mistakes.

Expressions are trees of `Node`s with shapes; `text` writes one through Python's own `ast`, so that
what is tested is the language as a user writes it. Rewritings are identities of matrix algebra.
Those that rest on a declared kind are never used below a derivative or a step, where a kind does
not hold for the moved matrix.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

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
KINDS = {
    "S": "symmetric",
    "K": "skew",
    "L": "diagonal",
    "M": "diagonal",
    "O": "orthogonal",
    "G": "invertible",
    "P": "orthonormal",
    "Z": "symmetric",
}
SCALARS = ("a", "b")
VELOCITY = {"X": "Y @ X - X.T", "A": "2 * A @ S - B", "x": "X @ x", "W": "K @ W", "b": "a * b"}
UPDATE = {"X": "X - a * Y @ X", "A": "A + B * A", "x": "x - y", "a": "a + 1"}
DIMS = ("m", "n", "r")
CALCULUS = ("D", "grad", "d", "after")
VARIABLES = ("A", "X", "W", "x", "S", "a")

DECLARATIONS = "\n".join(
    [
        "[matrices]",
        *(
            f"{k} = [{', '.join(d if d.isdigit() else repr(d) for d in shape)}]"
            for k, shape in SHAPES.items()
        ),
        "[kinds]",
        *(f'{k} = "{kind}"' for k, kind in KINDS.items()),
        "[scalars]",
        *(f"{s} = {{}}" for s in SCALARS),
        "[flow.velocity]",
        *(f'{k} = "{v}"' for k, v in VELOCITY.items()),
        "[step.update]",
        *(f'{k} = "{v}"' for k, v in UPDATE.items()),
    ]
)


def claim_file(left: str, right: str, name: str = "c") -> str:
    return f'{DECLARATIONS}\n\n[[claim]]\nid = "{name}"\nsays = "{left} == {right}"\n'


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
    rows, cols = SHAPES.get(symbol, ("1", "1"))
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
        case "neg":
            return ast.UnaryOp(ast.USub(), args[0])
        case "T":
            return ast.Attribute(args[0], "T", ast.Load())
        case "eye":
            return ast.parse(f"eye({node.rows})", mode="eval").body
        case "ones" | "zeros":
            return ast.parse(f"{node.op}({node.rows}, {node.cols})", mode="eval").body
        case "grad" | "D":
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
    """Number of matrices in the longest product, derivatives and scalars left aside."""
    below = [degree(arg) for arg in node.args]
    match node.op:
        case "name":
            return int(str(node.data) in SHAPES)
        case "mm" | "mul" | "inner":
            return sum(below)
        case "norm2":
            return 2 * below[0]
        case "pow":
            assert isinstance(node.data, int)
            return node.data * below[0]
        case _:
            return max(below, default=0)


def features(node: Node) -> set[str]:
    """Operators and kinds that occur."""
    found: set[str] = set()
    for part in walk(node):
        found.add(part.op)
        if part.op == "mul":
            found.add("scale" if part.args[0].scalar or part.args[1].scalar else "hadamard")
        if part.op == "name" and str(part.data) in SHAPES:
            found.add(KINDS.get(str(part.data), "general"))
        if part.op == "name" and str(part.data) in SCALARS:
            found.add("scalar")
        if part.op == "name" and str(part.data) in DIMS:
            found.add("dimension")
    return found


# --- drawing --------------------------------------------------------------------------------------


class Draw:
    """Draws expressions; a source of randomness and the odds of a sum."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sums = 2

    def split(self, degree: int) -> tuple[int, int]:
        first = self.rng.randint(1, degree - 1)
        return first, degree - first

    def leaf(self, rows: str, cols: str) -> Node:
        options = [name(s) for s, shape in SHAPES.items() if shape == (rows, cols)]
        options += [turn(name(s)) for s, shape in SHAPES.items() if shape == (cols, rows)]
        if rows == cols != "1":
            options += [eye(rows), square("inv", name("G"))] if rows == "n" else [eye(rows)]
        if rows == cols == "1":
            options = [name(s) for s in SCALARS] + [to_scalar("tr", name(s)) for s in "XSLZ"]
            options += [num(2), dim(self.rng.choice(DIMS))]
        if not options or self.rng.random() < 0.05:
            options = [ones(rows, cols)]
        return self.rng.choice(options)

    def matrix(self, rows: str, cols: str, degree: int) -> Node:
        """An expression of that shape and about that degree."""
        if degree <= 1:
            return self.leaf(rows, cols)
        rules: list[Callable[[str, str, int], Node]] = [self._matmul] * 4
        rules += [self._hadamard, self._scale, self._turn]
        if self.sums > 0:
            rules += [self._sum] * 2
        if degree % 2 == 0 and rows != "1":
            rules.append(lambda r, c, d: power(self.matrix(r, c, d // 2), 2))
        if rows == cols == "1":
            rules = [self._trace, self._trace, self._norm2, self._inner, self._total, self._matmul]
            rules.append(self._sum)
        elif rows == cols:
            rules += [self._diag, self._diagpart, self._half]
        return self.rng.choice(rules)(rows, cols, degree)

    def _matmul(self, rows: str, cols: str, degree: int) -> Node:
        one, other = self.split(degree)
        inner = self.rng.choice(["m", "n", "n", "r", "1"])
        return mm(self.matrix(rows, inner, one), self.matrix(inner, cols, other))

    def _hadamard(self, rows: str, cols: str, degree: int) -> Node:
        one, other = self.split(degree)
        return mul(self.matrix(rows, cols, one), self.matrix(rows, cols, other))

    def _scale(self, rows: str, cols: str, degree: int) -> Node:
        if self.rng.random() < 0.5:
            factor = self.rng.choice([name("a"), name("b"), dim("n"), num(Fraction(3, 2)), num(-2)])
            return mul(factor, self.matrix(rows, cols, degree))
        if self.rng.random() < 0.5:
            divisor = self.rng.choice([name("a"), dim("m"), add(name("a"), num(7)), num(3)])
            return div(self.matrix(rows, cols, degree), divisor)
        one, other = self.split(degree)
        return mul(self.matrix("1", "1", one), self.matrix(rows, cols, other))

    def _turn(self, rows: str, cols: str, degree: int) -> Node:
        return turn(self.matrix(cols, rows, degree))

    def _sum(self, rows: str, cols: str, degree: int) -> Node:
        self.sums -= 1
        make = self.rng.choice([add, sub])
        other = self.rng.randint(1, degree)
        return make(self.matrix(rows, cols, degree), self.matrix(rows, cols, other))

    def _diag(self, rows: str, cols: str, degree: int) -> Node:
        return square("diag", self.matrix(rows, "1", degree))

    def _diagpart(self, rows: str, cols: str, degree: int) -> Node:
        return square("diagpart", self.matrix(rows, cols, degree))

    def _half(self, rows: str, cols: str, degree: int) -> Node:
        return square(self.rng.choice(["sym", "skew"]), self.matrix(rows, cols, degree))

    def _trace(self, rows: str, cols: str, degree: int) -> Node:
        n = self.rng.choice(["m", "n", "n", "r"])
        return to_scalar("tr", self.matrix(n, n, degree))

    def _norm2(self, rows: str, cols: str, degree: int) -> Node:
        r, c = self.rng.choice(DIMS), self.rng.choice(DIMS)
        return to_scalar("norm2", self.matrix(r, c, max(1, degree // 2)))

    def _inner(self, rows: str, cols: str, degree: int) -> Node:
        r, c = self.rng.choice(DIMS), self.rng.choice([*DIMS, "1"])
        one, other = self.split(degree)
        return to_scalar("inner", self.matrix(r, c, one), self.matrix(r, c, other))

    def _total(self, rows: str, cols: str, degree: int) -> Node:
        r, c = self.rng.choice(DIMS), self.rng.choice([*DIMS, "1"])
        return to_scalar("sum", self.matrix(r, c, degree))

    def any(self, degree: int, calculus: str | None = None) -> Node:
        """An expression of any shape; with a derivative or a step on top if asked for."""
        shapes = [("1", "1"), ("m", "n"), ("n", "n"), ("n", "n"), ("n", "1"), ("n", "r")]
        rows, cols = self.rng.choice(shapes)
        if calculus is None:
            return self.matrix(rows, cols, degree)
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
        drawn = self.matrix(rows, cols, degree)
        for _ in range(30):
            if any(part.op == "name" and part.data == symbol for part in walk(drawn)):
                break
            drawn = self.matrix(rows, cols, degree)
        return drawn


# --- true rewritings ------------------------------------------------------------------------------

Rule = Callable[[Node, random.Random], Node | None]


def _product_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op != "mm":
        return None
    a, b = node.args
    options: list[Node] = [turn(mm(turn(b), turn(a)))]
    if a.op == "mm":
        options += [mm(a.args[0], mm(a.args[1], b))] * 2
    if b.op == "mm":
        options += [mm(mm(a, b.args[0]), b.args[1])] * 2
    for part, build in ((a, lambda x: mm(x, b)), (b, lambda x: mm(a, x))):
        if part.op in ("add", "sub"):
            make = add if part.op == "add" else sub
            options += [make(build(part.args[0]), build(part.args[1]))] * 3
        if part.op == "neg":
            options.append(neg(build(part.args[0])))
    if a.op == "diag" and b.cols == "1":
        options.append(mul(a.args[0], b))
    if a.scalar or b.scalar:
        options.append(mul(a, b))
    return rng.choice(options)


def _transpose_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op != "T":
        return None
    (a,) = node.args
    match a.op:
        case "T":
            return a.args[0]
        case "mm":
            return mm(turn(a.args[1]), turn(a.args[0]))
        case "add" | "sub" | "mul" | "neg" | "pow":
            parts = tuple(part if part.scalar else turn(part) for part in a.args)
            return Node(a.op, parts, a.data, a.cols, a.rows)
        case "sym" | "diag" | "diagpart" | "eye":
            return a
        case "skew":
            return neg(a)
        case "ones":
            return ones(a.cols, a.rows)
        case _:
            return None


def _sum_rules(node: Node, rng: random.Random) -> Node | None:
    match node.op:
        case "add":
            return add(node.args[1], node.args[0])
        case "sub":
            a, b = node.args
            return rng.choice([add(a, neg(b)), neg(sub(b, a))])
        case "neg":
            return mul(num(-1), node.args[0])
        case _:
            return None


def _elementwise_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op == "pow" and isinstance(node.data, int):
        k = node.data
        return mul(node.args[0], power(node.args[0], k - 1) if k > 2 else node.args[0])
    if node.op == "div":
        return mul(div(num(1), node.args[1]), node.args[0])
    if node.op != "mul":
        return None
    a, b = node.args
    options = [mul(b, a)]
    for part, other in ((a, b), (b, a)):
        if part.op in ("add", "sub"):
            make = add if part.op == "add" else sub
            options += [make(mul(part.args[0], other), mul(part.args[1], other))] * 3
        if part.op == "eye" and other.rows == other.cols != "1":
            options.append(square("diagpart", other))
        if part.op == "mul" and not part.scalar and not other.scalar:
            if not part.args[0].scalar and not part.args[1].scalar:
                options.append(mul(part.args[0], mul(part.args[1], other)))
    return rng.choice(options)


def _trace_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op != "tr":
        return None
    (a,) = node.args
    options = [to_scalar("tr", turn(a)), to_scalar("sum", mul(eye(a.rows), a))]
    if a.rows != "1":
        options.append(to_scalar("tr", square("diagpart", a)))
    if a.op == "mm":
        b, c = a.args
        options += [to_scalar("tr", mm(c, b))] * 3
        options += [to_scalar("inner", turn(b), c), to_scalar("sum", mul(turn(b), c))]
    if a.op in ("add", "sub"):
        parts = [to_scalar("tr", part) for part in a.args]
        options.append(Node(a.op, tuple(parts), None, "1", "1"))
    return rng.choice(options)


def _norm_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op == "norm2":
        (a,) = node.args
        return rng.choice(
            [
                to_scalar("tr", mm(turn(a), a)),
                to_scalar("tr", mm(a, turn(a))),
                to_scalar("inner", a, a),
                to_scalar("sum", power(a, 2)),
                to_scalar("norm2", turn(a)),
                to_scalar("norm2", neg(a)),
            ]
        )
    if node.op == "inner":
        a, b = node.args
        return rng.choice(
            [
                to_scalar("inner", b, a),
                to_scalar("tr", mm(turn(a), b)),
                to_scalar("tr", mm(b, turn(a))),
                to_scalar("sum", mul(a, b)),
                to_scalar("inner", turn(a), turn(b)),
            ]
        )
    if node.op == "sum":
        (a,) = node.args
        return rng.choice(
            [to_scalar("sum", turn(a)), mm(mm(ones("1", a.rows), a), ones(a.cols, "1"))]
        )
    return None


def _diagonal_rules(node: Node, rng: random.Random) -> Node | None:
    match node.op:
        case "diagpart":
            (a,) = node.args
            vector = mm(square("diagpart", a), ones(a.rows, "1"))
            return rng.choice(
                [mul(eye(a.rows), a), square("diagpart", turn(a)), square("diag", vector)]
            )
        case "diag":
            (a,) = node.args
            row = mm(a, ones("1", a.rows))
            return rng.choice([turn(node), mul(eye(a.rows), row), square("diagpart", row)])
        case "sym":
            (a,) = node.args
            return rng.choice([square("sym", turn(a)), div(add(a, turn(a)), num(2))])
        case "skew":
            (a,) = node.args
            return rng.choice([neg(square("skew", turn(a))), div(sub(a, turn(a)), num(2))])
        case _:
            return None


def _insertions(node: Node, rng: random.Random) -> Node | None:
    extra = Draw(rng).leaf(*node.shape)
    half = mul(num(Fraction(1, 2)), node)
    options = [
        sub(add(node, extra), extra),
        add(half, half),
        neg(neg(node)),
        div(mul(name("a"), node), name("a")),
        mul(div(to_scalar("tr", eye("n")), dim("n")), node),
    ]
    if node.rows != "1":
        options.append(mm(eye(node.rows), node))
    if not node.scalar:
        options += [mul(ones(*node.shape), node), turn(turn(node))]
    return rng.choice(options)


def _calculus_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op not in CALCULUS:
        return None
    f = node.args[0]

    def same(g: Node) -> Node:
        """The same derivative of another expression."""
        if node.op == "grad":
            return replace(node, args=(g,))
        return replace(node, args=(g, *node.args[1:]), rows=g.rows, cols=g.cols)

    match f.op:
        case "add" | "sub" | "neg":
            parts = tuple(same(part) for part in f.args)
            return Node(f.op, parts, None, *node.shape)
        case _ if node.op == "grad":
            return _gradient_rules(node, f)
        case "T":
            return turn(same(f.args[0]))
        case "tr" | "sum" | "diag" | "diagpart" | "sym" | "skew":
            return replace(f, args=(same(f.args[0]),))
        case "mm" | "mul" | "inner" if node.op != "after":
            a, b = f.args
            return add(replace(f, args=(same(a), b)), replace(f, args=(a, same(b))))
        case "mm" | "mul" | "inner":
            return replace(f, args=tuple(map(same, f.args)))
        case "name":
            return _moved(node, str(f.data))
        case "eye" | "ones" | "num":
            return f if node.op == "after" else zeros(*f.shape)
        case _ if node.op == "D" and f.scalar:
            return to_scalar("inner", grad(f, str(node.data)), node.args[1])
        case _:
            return None


def _moved(node: Node, symbol: str) -> Node | None:
    if node.op == "D":
        return node.args[1] if symbol == node.data else zeros(*node.shape)
    table = VELOCITY if node.op == "d" else UPDATE
    if symbol in table:
        return None  # the text of the velocity is not a tree; its product rules are tested above
    return name(symbol) if node.op == "after" else zeros(*node.shape)


def _gradient_rules(node: Node, f: Node) -> Node | None:
    v = str(node.data)
    if f.op in ("tr", "sum", "norm2", "inner"):
        for rule in (_trace_rules, _norm_rules):
            new = rule(f, random.Random(0))
            if new is not None:
                return replace(node, args=(new,))
    if f.op == "mul" and f.args[0].op == "name" and f.args[0].data != v:
        return mul(f.args[0], grad(f.args[1], v))
    if f.op == "mul":
        a, b = f.args
        return add(mul(a, grad(b, v)), mul(b, grad(a, v)))
    return None


def _kind_rules(node: Node, rng: random.Random) -> Node | None:
    """Identities that hold because of a declared kind."""
    options: list[Node] = []
    if node.op == "name" and isinstance(node.data, str) and node.data in KINDS:
        kind = KINDS[node.data]
        if kind in ("symmetric", "diagonal"):
            options.append(turn(node))
        if kind == "skew":
            options += [neg(turn(node)), square("skew", node)]
        if kind == "symmetric":
            options.append(square("sym", node))
        if kind == "diagonal":
            options += [
                square("diagpart", node),
                square("diag", mm(node, ones("n", "1"))),
                mul(eye("n"), node),
            ]
        if kind == "orthogonal":
            options += [turn(square("inv", node)), mm(mm(node, turn(node)), node)]
    if node.op == "inv" and node.args[0] == name("G"):
        options.append(turn(square("inv", turn(name("G")))))
    if node.op == "T" and node.args[0] == name("K"):
        options.append(neg(name("K")))
    if node.op == "T" and node.args[0].op == "name" and node.args[0].data in ("S", "Z", "L", "M"):
        options.append(node.args[0])
    if node.op == "mm" and node.args == (name("L"), name("M")):
        options += [mm(name("M"), name("L")), mul(name("L"), name("M"))]
    if node.op == "eye" and node.rows == "n":
        options.append(mm(turn(name("O")), name("O")))
    if node.rows == "n":
        options += [
            mm(mm(turn(name("O")), name("O")), node),
            mm(name("G"), mm(square("inv", name("G")), node)),
        ]
    if node.rows == "r":
        options.append(mm(mm(turn(name("P")), name("P")), node))
    if node.cols == "r":
        options.append(mm(mm(node, turn(name("P"))), name("P")))
    return rng.choice(options) if options else None


FREE_RULES: tuple[Rule, ...] = (
    _product_rules,
    _product_rules,
    _transpose_rules,
    _sum_rules,
    _elementwise_rules,
    _trace_rules,
    _norm_rules,
    _diagonal_rules,
    _calculus_rules,
    _calculus_rules,
)


def rewrite(node: Node, rng: random.Random, steps: int, largest: int = 160) -> Node:
    """The expression after some true rewritings at random places."""
    for _ in range(steps):
        new = _at_random(node, rng, lambda part, free: _rewritten(part, rng, free))
        if size(new) <= largest:
            node = new
    return node


def _rewritten(part: Node, rng: random.Random, free: bool) -> Node | None:
    roll = rng.random()
    if roll < 0.06:
        return _insertions(part, rng)
    if roll < 0.25 and not free:
        return _kind_rules(part, rng)
    rules = list(FREE_RULES)
    rng.shuffle(rules)
    for rule in rules:
        new = rule(part, rng)
        if new is not None:
            assert new.shape == part.shape, (rule, text(part), text(new))
            return new
    return None


def _at_random(node: Node, rng: random.Random, change: Callable[[Node, bool], Node | None]) -> Node:
    """Change one random place; `change` is told whether the place is below a derivative or step."""
    places = list(_places(node, (), False))
    rng.shuffle(places)
    for path, free in places:
        part = node
        for i in path:
            part = part.args[i]
        new = change(part, free)
        if new is not None:
            return _put(node, path, new)
    return node


def _places(
    node: Node, path: tuple[int, ...], free: bool
) -> Iterator[tuple[tuple[int, ...], bool]]:
    yield path, free
    for i, arg in enumerate(node.args):
        # Divisors and inverses are left alone: not every expression may stand there.
        if node.op == "inv" or (node.op == "div" and i == 1):
            continue
        yield from _places(arg, (*path, i), free or node.op in CALCULUS)


def _put(node: Node, path: tuple[int, ...], new: Node) -> Node:
    if not path:
        return new
    first, *rest = path
    args = list(node.args)
    args[first] = _put(args[first], tuple(rest), new)
    return replace(node, args=tuple(args))


# --- small mistakes -------------------------------------------------------------------------------


def spoil(node: Node, rng: random.Random) -> Node:
    """The expression with one change at a random place that may or may not matter."""
    return _at_random(node, rng, lambda part, _: _spoilt(part, rng))


def _spoilt(part: Node, rng: random.Random) -> Node | None:
    options: list[Node] = []
    if part.op not in ("num",):
        options += [neg(part), mul(num(2), part)]
    if part.op == "T" and part.rows == part.cols:
        options += [part.args[0]] * 3
    if part.op == "mm":
        a, b = part.args
        if a.shape == b.shape:
            options += [mm(b, a)] * 3 + [mul(a, b)]
        if a.rows == a.cols != "1":
            options.append(mm(turn(a), b))
        if a.shape == part.shape:
            options.append(a)
    if part.op == "mul" and part.args[0].shape == part.args[1].shape and part.rows == part.cols:
        options.append(mm(*part.args))
    if part.op in ("add", "sub"):
        options += [part.args[0], add(*part.args), sub(*part.args)]
    if part.op == "name" and part.data in SHAPES:
        others = [s for s, shape in SHAPES.items() if shape == part.shape and s != part.data]
        options += [name(rng.choice(others))] if others else []
    if part.op in ("diagpart", "sym", "skew"):
        options += [part.args[0]] * 2
    if part.op == "pow" and isinstance(part.data, int):
        options.append(power(part.args[0], part.data + 1))
    return rng.choice(options) if options else None
