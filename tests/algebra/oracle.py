"""A small exact evaluator of the claim-file language, written from its description alone.

It shares no code with the package. Entries are Python integers and fractions, or `Jet`s, which are
polynomials in infinitesimals whose squares are 0; each derivative takes fresh ones, so that
derivatives nest without care.
"""

from __future__ import annotations

import ast
import itertools
import math
import random
import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

Array = Any  # a 2-D NumPy array of objects: ints, Fractions, Jets
_fresh = itertools.count(1)


class Jet:
    """sum of coefficient * product of infinitesimals, each of square 0."""

    def __init__(self, parts: Mapping[frozenset[int], Fraction | int]) -> None:
        self.parts = {key: value for key, value in parts.items() if value}

    @staticmethod
    def of(value: Any) -> Jet:
        return value if isinstance(value, Jet) else Jet({frozenset(): value})

    def __add__(self, other: Any) -> Jet:
        parts = dict(self.parts)
        for key, value in Jet.of(other).parts.items():
            parts[key] = parts.get(key, 0) + value
        return Jet(parts)

    def __mul__(self, other: Any) -> Jet:
        parts: dict[frozenset[int], Fraction | int] = {}
        for key, value in self.parts.items():
            for key2, value2 in Jet.of(other).parts.items():
                if not key & key2:
                    parts[key | key2] = parts.get(key | key2, 0) + value * value2
        return Jet(parts)

    def __neg__(self) -> Jet:
        return Jet({key: -value for key, value in self.parts.items()})

    def __sub__(self, other: Any) -> Jet:
        return self + -Jet.of(other)

    def __rsub__(self, other: Any) -> Jet:
        return Jet.of(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def body(self) -> Fraction | int:
        return self.parts.get(frozenset(), 0)

    def along(self, infinitesimal: int) -> Jet:
        """The coefficient of one infinitesimal."""
        return Jet(
            {key - {infinitesimal}: v for key, v in self.parts.items() if infinitesimal in key}
        )


def invert_number(x: Any) -> Any:
    """1 / x; raises ZeroDivisionError where there is none."""
    if not isinstance(x, Jet):
        return Fraction(1) / Fraction(x)
    scale = Fraction(1) / Fraction(x.body)
    rest = x * scale - 1  # nilpotent: the geometric series ends
    result, power = Jet.of(1), Jet.of(1)
    while True:
        power = power * -rest
        if not power.parts:
            return result * scale
        result = result + power


def body(x: Any) -> Any:
    return x.body if isinstance(x, Jet) else x


def array(rows: Sequence[Sequence[Any]]) -> Array:
    result = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            result[i, j] = value
    return result


def number(value: Any) -> Array:
    return array([[value]])


def filled(rows: int, cols: int, value: int) -> Array:
    return array([[value] * cols for _ in range(rows)])


def filled_like(a: Array, value: int) -> Array:
    rows, cols = a.shape
    return filled(rows, cols, value)


def places(a: Array) -> list[tuple[int, int]]:
    rows, cols = a.shape
    return [(i, j) for i in range(rows) for j in range(cols)]


def identity(n: int) -> Array:
    return array([[int(i == j) for j in range(n)] for i in range(n)])


def product(a: Array, b: Array) -> Array:
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"shapes {a.shape} @ {b.shape}")
    return array(
        [
            [sum((a[i, k] * b[k, j] for k in range(a.shape[1])), 0) for j in range(b.shape[1])]
            for i in range(a.shape[0])
        ]
    )


def inverse(a: Array) -> Array:
    """Inverse by Gaussian elimination."""
    n = a.shape[0]
    work = [[*a[i], *identity(n)[i]] for i in range(n)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if body(work[i][k]) != 0), None)
        if pivot is None:
            raise ZeroDivisionError("singular")
        work[k], work[pivot] = work[pivot], work[k]
        scale = invert_number(work[k][k])
        work[k] = [x * scale for x in work[k]]
        for i in range(n):
            if i != k:
                factor = work[i][k]
                work[i] = [x - factor * y for x, y in zip(work[i], work[k], strict=True)]
    return array([row[n:] for row in work])


class World:
    """A claim file's declarations, and evaluation in them.

    Args:
        text: the claim file.
    """

    def __init__(self, text: str) -> None:
        self.toml = tomllib.loads(text)
        self.matrices: dict[str, list[Any]] = self.toml.get("matrices", {})
        self.scalars = list(self.toml.get("scalars", {}))
        self.functions = list(self.toml.get("functions", {}))
        kinds: dict[str, Any] = self.toml.get("kinds", {})
        self.kinds = {k: {v} if isinstance(v, str) else set(v) for k, v in kinds.items()}
        self.define = {k: parse(str(v)) for k, v in self.toml.get("define", {}).items()}
        self.update = {
            k: parse(str(v)) for k, v in self.toml.get("step", {}).get("update", {}).items()
        }
        flow = self.toml.get("flow", {})
        self.velocity = {k: parse(str(v)) for k, v in flow.get("velocity", {}).items()}
        self.loss = parse(flow["loss"]) if "loss" in flow else None
        self.variables: list[str] = flow.get("variables", [])

    def claim(self, name: str | None = None) -> Mapping[str, Any]:
        return next(c for c in self.toml["claim"] if name is None or c["id"] == name)

    def sides(
        self, dims: Mapping[str, int], values: Mapping[str, Array], says: str | None = None
    ) -> tuple[Array, Array]:
        """Both sides of a claim, entries exact."""
        left, right = (says if says is not None else self.claim()["says"]).split("==")
        return self.equation(left, right, dims, values)

    def equation(
        self, left: str, right: str, dims: Mapping[str, int], values: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        one, other = self.at(left, dims, values), self.at(right, dims, values)
        if _is_zero(parse(left)):
            one = filled_like(other, 0)
        if _is_zero(parse(right)):
            other = filled_like(one, 0)
        assert one.shape == other.shape
        return one, other

    def at(self, text: str, dims: Mapping[str, int], values: Mapping[str, Array]) -> Array:
        return _Evaluation(self, dims).value(parse(text), dict(values))

    def equal(
        self, dims: Mapping[str, int], values: Mapping[str, Array], says: str | None = None
    ) -> bool:
        one, other = self.sides(dims, values, says)
        return bool((one == other).all())

    def of_kind(self, name: str, value: Array) -> bool:
        """Whether a value satisfies every kind declared for its name."""
        return all(is_of_kind(value, kind) for kind in self.kinds.get(name, ()))

    def draw(self, dims: Mapping[str, int], rng: random.Random, size: int = 3) -> dict[str, Array]:
        """Random exact values for every name."""
        values: dict[str, Array] = {s: number(rng.choice([-3, -2, 2, 3, 5])) for s in self.scalars}
        for name, (rows, cols) in self.matrices.items():
            m, n = dims.get(str(rows), rows), dims.get(str(cols), cols)
            values[name] = draw_matrix(m, n, self.kinds.get(name, set()), rng, size)
        for name in self.functions:  # a polynomial of degree 3, by its coefficients
            values[name] = array([[rng.randint(-size, size)] for _ in range(4)])
        return values


class _Evaluation:
    def __init__(self, world: World, dims: Mapping[str, int]) -> None:
        self.world, self.dims = world, dims

    def value(self, node: ast.expr, env: dict[str, Array]) -> Array:
        match node:
            case ast.Constant(value=x):
                return number(_exact(x))
            case ast.Name(id=name):
                return self.name(name, env)
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return -self.value(x, env)
            case ast.UnaryOp(op=ast.UAdd(), operand=x):
                return self.value(x, env)
            case ast.Attribute(value=x, attr="T"):
                return self.value(x, env).T
            case ast.BinOp(left=a, op=op, right=b):
                return self.binary(a, op, b, env)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, args, env)
            case _:
                raise ValueError(ast.dump(node))

    def name(self, name: str, env: dict[str, Array]) -> Array:
        if name in self.world.define:
            return self.value(self.world.define[name], env)
        if name in env:
            return env[name]
        return number(self.dims[name])

    def binary(self, a: ast.expr, op: ast.operator, b: ast.expr, env: dict[str, Array]) -> Array:
        x = self.value(a, env)
        if isinstance(op, ast.Pow):
            return power(x, int(body(self.value(b, env)[0, 0])))
        y = self.value(b, env)
        match op:
            case ast.Add() | ast.Sub():
                if _is_zero(a):
                    x = filled_like(y, 0)
                if _is_zero(b):
                    y = filled_like(x, 0)
                assert x.shape == y.shape
                return x + y if isinstance(op, ast.Add) else x - y
            case ast.Mult():
                return times(x, y)
            case ast.Div():
                assert y.shape == (1, 1)
                return x * invert_number(y[0, 0])
            case ast.MatMult():
                return product(x, y)
            case _:
                raise ValueError(ast.dump(op))

    def call(self, name: str, args: list[ast.expr], env: dict[str, Array]) -> Array:
        if name in ("eye", "ones", "zeros"):
            rows, cols = self.size(args[0]), self.size(args[-1])
            return identity(rows) if name == "eye" else filled(rows, cols, int(name == "ones"))
        if name == "d":
            return self.along(args[0], env, self.velocities(env))
        if name == "after":
            moved = {k: self.fit(k, self.value(v, env)) for k, v in self.world.update.items()}
            return self.value(args[0], {**env, **moved})
        if name == "D":
            assert isinstance(args[1], ast.Name)
            return self.along(args[0], env, {args[1].id: self.value(args[2], env)})
        if name == "grad":
            assert isinstance(args[1], ast.Name)
            return self.gradient(args[0], args[1].id, env)
        if name == "expect":
            assert isinstance(args[1], ast.Name)
            return self.mean(args[0], args[1].id, env)
        x = self.value(args[0], env)
        match name:
            case "tr":
                return number(sum(x[i, i] for i in range(x.shape[0])))
            case "sum":
                return number(sum(x[i, j] for i, j in places(x)))
            case "norm2":
                return number(sum(x[i, j] * x[i, j] for i, j in places(x)))
            case "inner":
                y = self.value(args[1], env)
                assert x.shape == y.shape
                return number(sum(x[i, j] * y[i, j] for i, j in places(x)))
            case "diag":
                n = x.shape[0]
                return array([[x[i, 0] if i == j else 0 for j in range(n)] for i in range(n)])
            case "diagpart":
                n = x.shape[0]
                return array([[x[i, i] if i == j else 0 for j in range(n)] for i in range(n)])
            case "sym":
                return (x + x.T) * Fraction(1, 2)
            case "skew":
                return (x - x.T) * Fraction(1, 2)
            case "inv":
                return inverse(x)
            case _:
                return self.shaped(name, x, args[1:], env)

    def shaped(self, name: str, x: Array, args: list[ast.expr], env: dict[str, Array]) -> Array:
        """Kronecker products, blocks, flattened tensors, and functions given as polynomials."""
        if name.lstrip("d") in self.world.functions:
            return self.applied(name, x, env)
        others = [self.value(arg, env) for arg in args]
        match name:
            case "vec":
                return array([[x[i, j]] for j in range(x.shape[1]) for i in range(x.shape[0])])
            case "kron":
                return kronecker(x, others[0])
            case "face_splitting":
                return face(x, others[0])
            case "tensor":
                return product(x, face(*others))
            case "contract" if len(others) == 2:
                return product(x, kronecker(*others))
            case "contract":
                count = x.shape[1] // others[0].shape[0]
                return product(x, kronecker(identity(count), others[0]))
            case "hstack":
                return np.concatenate([x, *others], axis=1)
            case "vstack":
                return np.concatenate([x, *others], axis=0)
            case "blkdiag":
                return blocks([x, *others])
            case _:
                raise ValueError(name)

    def applied(self, name: str, x: Array, env: dict[str, Array]) -> Array:
        base = name if name in env else name.lstrip("d")
        coefficients = env[base][:, 0].tolist()
        for _ in range(len(name) - len(base)):
            coefficients = [k * c for k, c in enumerate(coefficients)][1:]
        total = filled_like(x, 0)
        for c in reversed(coefficients):
            total = times(total, x) + filled_like(x, c)
        return total

    def mean(self, node: ast.expr, name: str, env: dict[str, Array]) -> Array:
        """Over a Gaussian column."""
        nodes, weights = gaussian_rule(self.degree(node, name))
        declared = self.world.matrices[name][0]
        size = int(self.dims.get(str(declared), declared))
        total: Any = 0
        for pick in itertools.product(range(len(nodes)), repeat=size):
            weight = math.prod((weights[i] for i in pick), start=Fraction(1))
            column = array([[nodes[i]] for i in pick])
            total = total + weight * self.value(node, {**env, name: column})
        return total

    def degree(self, node: ast.expr, name: str) -> int:
        """A bound on the degree in a name; `MOST_MOMENTS` where this is not looked into."""
        match node:
            case ast.Name(id=other) if other in self.world.define:
                return self.degree(self.world.define[other], name)
            case ast.Name(id=other):
                return int(other == name)
            case ast.BinOp(left=a, op=ast.Pow(), right=ast.Constant(value=int(k))):
                return k * self.degree(a, name)
            case ast.BinOp(left=a, op=ast.Add() | ast.Sub(), right=b):
                return max(self.degree(a, name), self.degree(b, name))
            case ast.BinOp(left=a, right=b):
                return self.degree(a, name) + self.degree(b, name)
            case ast.UnaryOp(operand=a) | ast.Attribute(value=a):
                return self.degree(a, name)
            case ast.Call(func=ast.Name(id="norm2"), args=[a]):
                return 2 * self.degree(a, name)
            case ast.Call(func=ast.Name(id=function), args=args) if function in POLYNOMIAL:
                return sum(self.degree(arg, name) for arg in args)
            case _:
                named = any(isinstance(x, ast.Name) and x.id == name for x in ast.walk(node))
                return MOST_MOMENTS if named else 0

    def size(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=value):
                return int(str(value))
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return self.size(a) * self.size(b)
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return self.size(a) + self.size(b)
            case _:
                assert isinstance(node, ast.Name)
                return self.dims[node.id]

    def fit(self, name: str, value: Array) -> Array:
        """A velocity or update written 0 has the shape of its matrix."""
        rows, cols = (self.dims.get(str(s), s) for s in self.world.matrices.get(name, [1, 1]))
        return filled(rows, cols, 0) if value.shape != (rows, cols) else value

    # --- derivatives ---------------------------------------------------------------------------

    def along(self, node: ast.expr, env: dict[str, Array], motion: Mapping[str, Array]) -> Array:
        """The derivative as every named matrix moves by what is given for it."""
        e = next(_fresh)
        step = Jet({frozenset([e]): 1})
        moved = {name: env[name] + change * step for name, change in motion.items()}
        return _coefficient(self.value(node, {**env, **moved}), e)

    def gradient(self, node: ast.expr, name: str, env: dict[str, Array]) -> Array:
        rows, cols = env[name].shape
        result = filled(rows, cols, 0)
        for i, j in places(result):
            unit = filled(rows, cols, 0)
            unit[i, j] = 1
            slope = self.along(node, env, {name: unit})
            assert slope.shape == (1, 1)
            result[i, j] = slope[0, 0]
        return result

    def velocities(self, env: dict[str, Array]) -> dict[str, Array]:
        if self.world.loss is None:
            return {k: self.fit(k, self.value(v, env)) for k, v in self.world.velocity.items()}
        result: dict[str, Array] = {}
        for name in self.world.variables:
            free = -self.gradient(self.world.loss, name, env)
            kinds = self.world.kinds.get(name, set())
            if "diagonal" in kinds:
                n = free.shape[0]
                free = array([[free[i, j] if i == j else 0 for j in range(n)] for i in range(n)])
            if "symmetric" in kinds:
                free = (free + free.T) * Fraction(1, 2)
            if "skew" in kinds:
                free = (free - free.T) * Fraction(1, 2)
            result[name] = free
        return result


MOST_MOMENTS = 9
POLYNOMIAL = frozenset(
    (
        *("tr", "sum", "inner", "diag", "diagpart", "sym", "skew", "eye", "ones", "zeros"),
        *("vec", "kron", "face_splitting", "tensor", "contract", "hstack", "vstack", "blkdiag"),
        *("D", "grad"),
    )
)
"""Functions whose degree is at most the sum of the degrees of their arguments."""


@cache
def gaussian_rule(degree: int) -> tuple[list[int], list[Fraction]]:
    """Nodes and weights of a rational rule with a Gaussian's moments up to a degree (at most 9)."""
    assert degree <= MOST_MOMENTS
    nodes = [0, *(sign * k for k in range(1, degree // 2 + 1) for sign in (1, -1))]
    moments = [math.prod(range(1, k, 2)) if k % 2 == 0 else 0 for k in range(len(nodes))]
    powers = array([[Fraction(x) ** k for x in nodes] for k in range(len(nodes))])
    weights = product(inverse(powers), array([[m] for m in moments]))[:, 0].tolist()
    kept = [(x, w) for x, w in zip(nodes, weights, strict=True) if w]
    return [x for x, _ in kept], [w for _, w in kept]


@lru_cache(maxsize=256)
def parse(text: str) -> ast.expr:
    text = " ".join(text.split())
    tree = ast.parse(text, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            node.value = Fraction(str(ast.get_source_segment(text, node)))  # type: ignore[assignment]
    return tree


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _coefficient(value: Array, e: int) -> Array:
    result = array([[Jet.of(x).along(e) for x in row] for row in value])
    return array([[x.body if set(x.parts) <= {frozenset()} else x for x in row] for row in result])


def times(x: Array, y: Array) -> Array:
    if x.shape == (1, 1):
        return y * x[0, 0]
    if y.shape == (1, 1):
        return x * y[0, 0]
    assert x.shape == y.shape
    return x * y


def power(x: Array, exponent: int) -> Array:
    if exponent < 0:
        assert x.shape == (1, 1)
        return power(number(invert_number(x[0, 0])), -exponent)
    result = filled_like(x, 1)
    for _ in range(exponent):
        result = result * x
    return result


# --- kinds --------------------------------------------------------------------------------------


def is_of_kind(a: Array, kind: str) -> bool:
    match kind:
        case "diagonal":
            return all(a[i, j] == 0 for i, j in places(a) if i != j)
        case "symmetric":
            return bool((a == a.T).all())
        case "skew":
            return bool((a == -a.T).all())
        case "orthonormal":
            return bool((product(a.T, a) == identity(a.shape[1])).all())
        case "orthogonal":
            return a.shape[0] == a.shape[1] and is_of_kind(a, "orthonormal")
        case "invertible":
            try:
                inverse(a)
            except ZeroDivisionError:
                return False
            return True
        case _:
            assert kind == "constant"
            return True


def draw_matrix(rows: int, cols: int, kinds: set[str], rng: random.Random, size: int = 3) -> Array:
    """A random exact matrix of the kinds (those combinations that the tests use)."""
    if kinds & {"orthonormal", "orthogonal"}:
        if "diagonal" in kinds:
            return array(
                [[rng.choice([-1, 1]) if i == j else 0 for j in range(cols)] for i in range(rows)]
            )
        if "symmetric" in kinds:
            return reflection(rows, rng)
        if "skew" in kinds:
            q, turns = reflection(rows, rng), blocks([array([[0, 1], [-1, 0]])] * (rows // 2))
            return product(product(q, turns), q)
        q = product(reflection(rows, rng), reflection(rows, rng))
        signs = [rng.choice([-1, 1]) for _ in range(rows)]
        return array([[signs[j] * q[i, j] for j in range(cols)] for i in range(rows)])
    while True:
        a = array([[rng.randint(-size, size) for _ in range(cols)] for _ in range(rows)])
        if "diagonal" in kinds:
            a = array([[a[i, j] if i == j else 0 for j in range(cols)] for i in range(rows)])
        if "symmetric" in kinds:
            a = a + a.T
        if "skew" in kinds:
            a = a - a.T
        if "invertible" not in kinds or is_of_kind(a, "invertible"):
            return a


def reflection(n: int, rng: random.Random) -> Array:
    """Householder's reflection in a random integer vector."""
    v = [rng.randint(-2, 2) for _ in range(n)]
    v[rng.randrange(n)] += 5
    square = sum(x * x for x in v)
    return array(
        [[int(i == j) - Fraction(2 * v[i] * v[j], square) for j in range(n)] for i in range(n)]
    )


# --- counterexamples ----------------------------------------------------------------------------


def separates(text: str, counterexample: Any, name: str | None = None) -> bool:
    """Whether a counterexample is one: sizes, kinds and equations hold, and the sides differ.

    Args:
        text: the claim file.
        counterexample: with dims, values, left, right; rows as nested sequences, rationals as
            numbers or "p/q".
        name: the claim's id; the first claim if None.
    """
    world = World(text)
    claim = world.claim(name)
    dims = dict(counterexample.dims)
    values: dict[str, Array] = {}
    for key, value in counterexample.values.items():
        if key in world.functions:
            values[key] = polynomial(value)
            continue
        values[key] = number(_exact(value)) if key in world.scalars else _rows(value)
    for key, value in values.items():
        if key in world.functions:
            continue
        declared = world.matrices.get(key, [1, 1])
        if value.shape != tuple(dims.get(str(s), s) for s in declared):
            return False
        if not world.of_kind(key, value):
            return False
    for line in claim.get("assume", []):
        if not world.equal(dims, values, line):
            return False
    left, right = world.sides(dims, values, claim["says"])
    shown = _rows(counterexample.left), _rows(counterexample.right)
    if not ((left == shown[0]).all() and (right == shown[1]).all()):
        return False
    return bool((left != right).any())


def polynomial(text: str) -> Array:
    """Coefficients of a polynomial in z, from its text."""
    coefficients: list[Any] = [0] * 12
    for term in text.split(" + "):
        factor, _, power = term.partition("z")
        place = 0 if "z" not in term else int(power.replace("**", "") or 1)
        coefficients[place] += Fraction(factor.replace("*", "").strip() or 1)
    return array([[c] for c in coefficients])


def kronecker(a: Array, b: Array) -> Array:
    return array([[x * y for x in row for y in other] for row in a for other in b])


def face(a: Array, b: Array) -> Array:
    return array([[x * y for x in p for y in q] for p, q in zip(a, b, strict=True)])


def blocks(parts: Sequence[Array]) -> Array:
    total = filled(sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts), 0)
    i = j = 0
    for p in parts:
        total[i : i + p.shape[0], j : j + p.shape[1]] = p
        i, j = i + p.shape[0], j + p.shape[1]
    return total


def _rows(rows: Any) -> Array:
    return array([[_exact(x) for x in row] for row in rows])


def _exact(x: Any) -> Any:
    if isinstance(x, str):
        return Fraction(x)
    assert isinstance(x, int | Fraction)
    assert not isinstance(x, bool)
    return x
