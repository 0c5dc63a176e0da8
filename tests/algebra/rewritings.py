"""True rewritings of random expressions, and small mistakes.

Rewritings are identities of matrix algebra. Those that rest on a declared kind are never used below
a derivative or a step, where a kind does not hold for the moved matrix.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from algebra.generate import (
    ALL_SHAPES,
    CALCULUS,
    INVERTIBLE,
    KINDS,
    SHAPES,
    UPDATE,
    VELOCITY,
    Draw,
    Node,
    add,
    alike,
    blkdiag,
    contract,
    dim,
    div,
    eye,
    face,
    grad,
    hstack,
    kron,
    mean,
    mm,
    mul,
    name,
    neg,
    num,
    ones,
    pair,
    plain,
    power,
    size,
    square,
    sub,
    tensor,
    text,
    to_scalar,
    turn,
    vec,
    vstack,
    walk,
    zeros,
)

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
    return rng.choice(options + _wide_products(a, b) * 2)


def _wide_products(a: Node, b: Node) -> list[Node]:
    """Products of Kronecker products, tensors and blocks."""
    options: list[Node] = []
    if a.op == "kron" and b.op == "kron":
        (p, q), (c, d) = a.args, b.args
        if p.cols == c.rows and q.cols == d.rows:
            options.append(kron(mm(p, c), mm(q, d)))
    if a.op == "kron" and b.op == "vec":
        (p, q), (x,) = a.args, b.args
        if p.cols == x.cols and q.cols == x.rows:
            options.append(vec(mm(mm(q, x), turn(p))))
    if a.op == "face_splitting" and b.op == "kron":
        (p, q), (c, d) = a.args, b.args
        if p.cols == c.rows and q.cols == d.rows:
            options.append(face(mm(p, c), mm(q, d)))
    if b.op == "face_splitting":
        options.append(tensor(a, *b.args))
    if a.op == "hstack" and b.op == "vstack" and len(a.args) == len(b.args) == 2:
        (p, q), (c, d) = a.args, b.args
        if p.cols == c.rows:
            options.append(add(mm(p, c), mm(q, d)))
    if b.op == "hstack":
        options.append(hstack(*(mm(a, part) for part in b.args)))
    if a.op == "vstack":
        options.append(vstack(*(mm(part, b) for part in a.args)))
    if a.op == "blkdiag" and b.op == "vstack" and len(b.args) == 2:
        (p, q), (c, d) = a.args, b.args
        if p.cols == c.rows:
            options.append(vstack(mm(p, c), mm(q, d)))
    if a.cols == "1" and b.rows == "1":
        options.append(kron(a, b))
    return options


def _multilinear_rules(node: Node, rng: random.Random) -> Node | None:
    """Kronecker products, flattened tensors, blocks, opaque functions, signs, zeros."""
    args = node.args
    options: list[Node] = []
    match node.op:
        case "kron":
            options = _kron_rules(*args)
        case "vec":
            options = _vec_rules(args[0])
        case "face_splitting":
            a, b = args
            wide = mul(kron(a, ones("1", b.cols)), kron(ones("1", a.cols), b))
            options = [wide, *_bilinear(node)]
            if a.cols == b.cols == "1":
                options.append(mul(a, b))
        case "tensor":
            options = [mm(args[0], face(*args[1:]))]
        case "contract":
            options = _contract_rules(*args)
        case "hstack":
            options = [turn(vstack(*map(turn, args)))]
        case "vstack":
            options = [turn(hstack(*map(turn, args)))]
        case "blkdiag":
            a, b = args
            upper, lower = hstack(a, zeros(a.rows, b.cols)), hstack(zeros(b.rows, a.cols), b)
            options = [vstack(upper, lower), turn(blkdiag(turn(a), turn(b)))]
        case "phi" | "dphi":
            options = [turn(alike(node.op, turn(args[0])))]
            if args[0].op in ("hstack", "vstack"):
                options.append(
                    replace(args[0], args=tuple(alike(node.op, p) for p in args[0].args))
                )
        case "pos":
            options = [args[0]]
        case "zeros":
            options = [mul(num(0), ones(*node.shape)), turn(zeros(node.cols, node.rows))]
        case _:
            return None
    return rng.choice(options) if options else None


def _bilinear(node: Node) -> list[Node]:
    """Sums in one of the two arguments, multiplied out."""
    options: list[Node] = []
    for place in (0, 1):
        part = node.args[place]
        if part.op in ("add", "sub", "neg"):

            def of(inside: Node, place: int = place) -> Node:
                args = (inside, node.args[1]) if place == 0 else (node.args[0], inside)
                return replace(node, args=args)

            options += [
                replace(part, args=tuple(map(of, part.args)), rows=node.rows, cols=node.cols)
            ]
    return options


def _kron_rules(a: Node, b: Node) -> list[Node]:
    options = [turn(kron(turn(a), turn(b))), *_bilinear(kron(a, b))]
    if all("+" not in dim for dim in (*a.shape, *b.shape)):
        options.append(mm(kron(a, eye(b.rows)), kron(eye(a.cols), b)))
    if a.scalar or b.scalar:
        options.append(mul(a, b))
    if a.cols == "1" and b.rows == "1":
        options.append(mm(a, b))
    if a.rows == "1" and b.cols == "1":
        options.append(mm(b, a))
    return options


def _vec_rules(a: Node) -> list[Node]:
    options: list[Node] = []
    if a.cols == "1":
        options.append(a)
    if a.rows == "1":
        options.append(turn(a))
    if a.op in ("add", "sub", "neg") or (
        a.op == "mul" and not (a.args[0].scalar or a.args[1].scalar)
    ):
        parts = tuple(map(vec, a.args))
        options.append(replace(a, args=parts, rows=parts[0].rows, cols="1"))
    if a.op == "mm" and all("+" not in dim for part in a.args for dim in part.shape):
        b, c = a.args
        options.append(mm(kron(turn(c), eye(b.rows)), vec(b)))
        options.append(mm(kron(eye(c.cols), b), vec(c)))
    return options


def _contract_rules(t: Node, *vectors: Node) -> list[Node]:
    if len(vectors) == 2:
        x, y = vectors
        options = [mm(t, kron(x, y))]
        if t.op == "tensor":
            p, w, v = t.args
            if w.cols == x.rows and v.cols == y.rows:
                options.append(mm(p, mul(mm(w, x), mm(v, y))))
        if x.rows != "1" and y.rows != "1" and pair(t.cols, "*") == (x.rows, y.rows):
            options.append(mm(contract(t, y), x))
        return options
    (y,) = vectors
    both = pair(t.cols, "*")
    assert both is not None
    options = [mm(t, kron(eye(both[0]), y))]
    if t.op == "tensor":
        p, w, v = t.args
        if v.cols == y.rows:
            options.append(mm(mm(p, square("diag", mm(v, y))), w))
    return options


def _mean_rules(node: Node, rng: random.Random) -> Node | None:
    """Means over a standard Gaussian column."""
    if node.op != "expect":
        return None
    (f,) = node.args
    v = str(node.data)

    def free(part: Node) -> bool:
        return all(inside.op != "name" or inside.data != v for inside in walk(part))

    if free(f):
        return f
    column = name(v)
    options: list[Node] = [mean(_put_for(f, v, neg(column)), v)]
    if f.op in ("add", "sub", "neg", "T", "tr", "sum", "diag", "diagpart", "sym", "skew", "vec"):
        parts = tuple(mean(part, v) for part in f.args)
        options += [replace(f, args=parts)] * 3
    if f.op in ("mm", "mul", "inner", "kron", "face_splitting"):
        a, b = f.args
        if free(a):
            options += [replace(f, args=(a, mean(b, v)))] * 3
        if free(b):
            options += [replace(f, args=(mean(a, v), b))] * 3
    if f == column:
        options += [zeros(*column.shape)] * 3
    if f == mm(column, turn(column)):
        options += [eye(column.rows)] * 3
    if f in (to_scalar("norm2", column), to_scalar("inner", column, column)):
        options += [dim(column.rows)] * 3
    return rng.choice(options)


def _put_for(node: Node, v: str, new: Node) -> Node:
    """An expression with something else in place of a name."""
    if node.op == "name" and node.data == v:
        return new
    return replace(node, args=tuple(_put_for(arg, v, new) for arg in node.args))


def _transpose_rules(node: Node, rng: random.Random) -> Node | None:
    if node.op != "T":
        return None
    (a,) = node.args
    match a.op:
        case "T":
            return a.args[0]
        case "kron" | "blkdiag" | "phi" | "dphi":
            return Node(a.op, tuple(map(turn, a.args)), None, a.cols, a.rows)
        case "hstack":
            return vstack(*map(turn, a.args))
        case "vstack":
            return hstack(*map(turn, a.args))
        case "zeros":
            return zeros(a.cols, a.rows)
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
        case "add" if all(part.op == "mm" for part in node.args) and rng.random() < 0.5:
            (a, b), (c, d) = node.args[0].args, node.args[1].args
            if all(map(plain, (a.cols, c.cols))):
                return mm(hstack(a, c), vstack(b, d))
            return add(node.args[1], node.args[0])
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
        if k < 0:
            return div(num(1), power(node.args[0], -k) if k < -1 else node.args[0])
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
        if all(map(plain, b.shape)):
            options.append(mm(turn(vec(turn(b))), vec(c)))
    if a.op == "kron":
        b, c = a.args
        if b.rows == b.cols and c.rows == c.cols:
            options += [mul(to_scalar("tr", b), to_scalar("tr", c))] * 3
    if a.op == "blkdiag":
        b, c = a.args
        if b.rows == b.cols and c.rows == c.cols:
            options += [add(to_scalar("tr", b), to_scalar("tr", c))] * 3
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
                *_of_parts("norm2", a),
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
            [
                to_scalar("sum", turn(a)),
                mm(mm(ones("1", a.rows), a), ones(a.cols, "1")),
                *_of_parts("sum", a),
            ]
        )
    return None


def _of_parts(function: str, a: Node) -> list[Node]:
    """sum and norm2 of blocks, Kronecker products and flattened matrices."""
    if a.op in ("hstack", "vstack", "blkdiag") and len(a.args) == 2:
        return [add(*(to_scalar(function, part) for part in a.args))] * 3
    if a.op == "kron":
        return [mul(*(to_scalar(function, part) for part in a.args))] * 3
    if a.op == "vec":
        return [to_scalar(function, a.args[0])] * 3
    return [to_scalar(function, vec(a))] if all(map(plain, a.shape)) else []


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


def _insertions(node: Node, rng: random.Random, opaque: bool) -> Node | None:
    extra = Draw(rng).leaf(*node.shape)
    half = mul(num(Fraction(1, 2)), node)
    options = [
        sub(add(node, extra), extra),
        add(half, half),
        neg(neg(node)),
        mul(div(to_scalar("tr", eye("n")), dim("n")), node),
    ]
    if node.rows != "1":
        options.append(mm(eye(node.rows), node))
    if not node.scalar:
        options += [mul(ones(*node.shape), node), turn(turn(node))]
    if not opaque:
        options.append(div(mul(name("a"), node), name("a")))
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
        case "tr" | "sum" | "diag" | "diagpart" | "sym" | "skew" | "vec" | "pos":
            return replace(f, args=(same(f.args[0]),))
        case "hstack" | "vstack" | "blkdiag":
            return replace(f, args=tuple(map(same, f.args)))
        case "phi" if node.op != "after":
            return mul(alike("dphi", f.args[0]), same(f.args[0]))
        case "phi" | "dphi" if node.op == "after":
            return replace(f, args=(same(f.args[0]),))
        case "mm" | "mul" | "inner" | "kron" | "face_splitting" if node.op != "after":
            a, b = f.args
            return add(replace(f, args=(same(a), b)), replace(f, args=(a, same(b))))
        case "mm" | "mul" | "inner" | "kron" | "face_splitting":
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


def _kinds(node: Node) -> set[str]:
    """Of a symbol or of the inverse of one."""
    if node.op == "inv":
        return _kinds(node.args[0])
    return {*KINDS.get(str(node.data), ())} if node.op == "name" else set()


def _of_symbol(node: Node) -> list[Node]:
    """What a matrix of a kind is equal to."""
    if node.op != "name":
        return []
    kinds, options = _kinds(node), list[Node]()
    if kinds & {"symmetric", "diagonal"}:
        options.append(turn(node))
    if "skew" in kinds:
        options += [neg(turn(node)), square("skew", node)]
    if "symmetric" in kinds:
        options.append(square("sym", node))
    if "diagonal" in kinds:
        options += [
            square("diagpart", node),
            square("diag", mm(node, ones(node.rows, "1"))),
            mul(eye(node.rows), node),
        ]
    if "orthogonal" in kinds:
        options += [turn(square("inv", node)), mm(mm(node, turn(node)), node)]
    elif "orthonormal" in kinds:
        options.append(mm(node, mm(turn(node), node)))
    if "invertible" in kinds:
        options.append(mm(mm(node, square("inv", node)), node))
    return options


def _of_inverse(node: Node) -> list[Node]:
    if node.op != "inv":
        return []
    (symbol,) = node.args
    kinds, options = _kinds(symbol), list[Node]()
    if symbol.op == "name" and symbol.data in INVERTIBLE:
        options.append(turn(square("inv", turn(symbol))))
        options.append(mm(mm(node, symbol), node))
    if "orthogonal" in kinds:
        options.append(turn(symbol))
    if "skew" in kinds:
        options.append(neg(turn(node)))
    if "diagonal" in kinds:
        options += [square("diagpart", node), turn(node)]
    return options


def _kind_rules(node: Node, rng: random.Random) -> Node | None:
    """Identities that hold because of a declared kind."""
    options = _of_symbol(node) + _of_inverse(node)
    if node.op == "T":
        kinds = _kinds(node.args[0])
        if kinds & {"symmetric", "diagonal"}:
            options.append(node.args[0])
        if "skew" in kinds:
            options.append(neg(node.args[0]))
    if node.op == "mm" and all("diagonal" in _kinds(part) for part in node.args):
        a, b = node.args
        options += [mm(b, a), mul(a, b)]
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


OPAQUE = frozenset({"phi", "dphi"})
"""Below these the prover uses no equations (so no kinds that are any), and cancels no scalars."""


def _linear_kind_rules(node: Node, rng: random.Random) -> Node | None:
    kinds = _kinds(node) & {"symmetric", "skew", "diagonal"}
    if node.op != "name" or not kinds:
        return None
    if "skew" in kinds:
        return neg(turn(node))
    return turn(node) if "symmetric" in kinds else square("diagpart", node)


FREE_RULES: tuple[Rule, ...] = (
    _product_rules,
    _product_rules,
    _transpose_rules,
    _sum_rules,
    _elementwise_rules,
    _trace_rules,
    _norm_rules,
    _diagonal_rules,
    _multilinear_rules,
    _multilinear_rules,
    _mean_rules,
    _mean_rules,
    _calculus_rules,
    _calculus_rules,
)


def rewrite(node: Node, rng: random.Random, steps: int, largest: int = 160) -> Node:
    """The expression after some true rewritings at random places."""
    for _ in range(steps):
        new = _at_random(node, rng, lambda part, below: _rewritten(part, rng, below))
        if size(new) <= largest:
            node = new
    return node


def _rewritten(part: Node, rng: random.Random, below: frozenset[str]) -> Node | None:
    roll = rng.random()
    opaque = bool(below & OPAQUE)
    if roll < 0.06:
        return _insertions(part, rng, opaque)
    if roll < 0.25 and not below & {*CALCULUS}:
        return (_linear_kind_rules if opaque else _kind_rules)(part, rng)
    rules = list(FREE_RULES)
    rng.shuffle(rules)
    for rule in rules:
        new = rule(part, rng)
        if new is not None:
            assert new.shape == part.shape, (rule, text(part), text(new))
            return new
    return None


def _at_random(
    node: Node, rng: random.Random, change: Callable[[Node, frozenset[str]], Node | None]
) -> Node:
    """Change one random place; `change` is told below which operations the place is."""
    places = list(_places(node, (), frozenset()))
    rng.shuffle(places)
    for path, below in places:
        part = node
        for i in path:
            part = part.args[i]
        new = change(part, below)
        if new is not None:
            return _put(node, path, new)
    return node


def _places(
    node: Node, path: tuple[int, ...], below: frozenset[str]
) -> Iterator[tuple[tuple[int, ...], frozenset[str]]]:
    yield path, below
    for i, arg in enumerate(node.args):
        # Divisors and inverses are left alone: not every expression may stand there.
        if node.op == "inv" or (node.op == "div" and i == 1):
            continue
        if node.op == "pow" and int(str(node.data)) < 0:
            continue
        yield from _places(arg, (*path, i), below | {node.op})


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
    if part.op == "name" and part.data in ALL_SHAPES:
        others = [s for s, shape in SHAPES.items() if shape == part.shape and s != part.data]
        options += [name(rng.choice(others))] if others else []
    if part.op in ("diagpart", "sym", "skew"):
        options += [part.args[0]] * 2
    if part.op == "pow" and isinstance(part.data, int):
        options.append(power(part.args[0], part.data + 1))
    if part.op in ("kron", "face_splitting", "hstack", "vstack", "blkdiag"):
        swapped = replace(part, args=part.args[::-1])
        options += [swapped] * 3 if part.args[0].shape == part.args[-1].shape else []
    if part.op in ("phi", "dphi"):
        options += [part.args[0], alike("dphi" if part.op == "phi" else "phi", part.args[0])]
    if part.op == "expect":
        options += [part.args[0]] * 2
    if part.op == "vec" and part.args[0].rows == part.args[0].cols:
        options += [vec(turn(part.args[0]))] * 3
    return rng.choice(options) if options else None
