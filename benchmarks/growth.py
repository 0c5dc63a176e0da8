"""How the prover's time grows with the degree of a claim and with its number of terms.

    python benchmarks/growth.py [--json FILE] [--plot FILE] [--only-plot]

times families of claims, prints them and what the limits are about, writes the JSON, and draws the
figure from it. Times are CPU seconds of reading and deciding, the least of several runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import machine

from nonmixing.algebra import decide, load_claims

ENOUGH = 5.0
"""CPU seconds of one claim after which a family is not taken further."""
LEAST_RUNS, LEAST_SECONDS = 3, 0.3

Declarations = dict[str, tuple[str | int, str | int]]


@dataclass(frozen=True)
class Sample:
    """One claim, declared and said."""

    matrices: Declarations
    says: str
    symmetric: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a claim file."""
        shapes = "".join(f"{n} = {json.dumps(shape)}\n" for n, shape in self.matrices.items())
        kinds = "".join(f'{name} = "symmetric"\n' for name in self.symmetric)
        return f'[matrices]\n{shapes}[kinds]\n{kinds}[[claim]]\nid = "it"\nsays = "{self.says}"\n'


@dataclass(frozen=True)
class Family:
    """Claims that grow.

    Attributes:
        name: in the figure's legend.
        axis: "degree" or "terms", what grows.
        verdict: that every claim of the family must get.
        sizes: which are timed.
        claim: the claim of a size.
    """

    name: str
    axis: str
    verdict: str
    sizes: Sequence[int]
    claim: Callable[[int], Sample]


def _square(names: Iterable[str]) -> Declarations:
    return dict.fromkeys(names, ("n", "n"))


def word_trace(degree: int) -> Sample:
    """The trace of a word in two symmetric matrices, against the reversed word."""
    letters = ["A" if k % 3 else "B" for k in range(degree)]
    left, right = " @ ".join(letters), " @ ".join(reversed(letters))
    return Sample(_square("AB"), f"tr({left}) == tr({right})", ("A", "B"))


def distinct_trace(degree: int) -> Sample:
    """The trace of distinct symmetric matrices, against the reversed word, turned."""
    letters = [f"S{k}" for k in range(degree)]
    turned = list(reversed(letters[1:])) + letters[:1]
    says = f"tr({' @ '.join(letters)}) == tr({' @ '.join(turned)})"
    return Sample(_square(letters), says, tuple(letters))


def trace_gradient(degree: int) -> Sample:
    """The gradient of the trace of a power of a symmetric matrix."""
    says = f"grad(tr({_power('A', degree)}), A) == {degree} * {_power('A', degree - 1)}"
    return Sample(_square("A"), says, ("A",))


def sum_trace(degree: int) -> Sample:
    """The trace of a power of a sum of two symmetric matrices: 2^degree words."""
    left, right = _power("(A + B)", degree), _power("(B + A)", degree)
    return Sample(_square("AB"), f"tr({left}) == tr({right})", ("A", "B"))


def false_trace(degree: int) -> Sample:
    """Two words of one degree with different traces: to be refuted."""
    half = degree // 2
    left = f"{_power('A', half)} @ {_power('B', half)}"
    return Sample(_square("AB"), f"tr({left}) == tr({_power('A @ B', half)})", ("A", "B"))


def norm_power(power: int) -> Sample:
    """A power of a squared norm, spelled in two ways."""
    return Sample({"X": ("n", "m")}, f"norm2(X) ** {power} == tr(X.T @ X) ** {power}")


def norm_gradient(power: int) -> Sample:
    """The gradient of a power of a squared norm."""
    right = f"{2 * power} * norm2(X) ** {power - 1} * X" if power > 1 else "2 * X"
    return Sample({"X": ("n", "m")}, f"grad(norm2(X) ** {power}, X) == {right}")


def entrywise_power(power: int) -> Sample:
    """One index in many factors: an entrywise power of W x."""
    right = " * ".join(["(W @ x)"] * power)
    return Sample({"W": ("h", "n"), "x": ("n", 1)}, f"sum((W @ x) ** {power}) == sum({right})")


def chain(length: int) -> Sample:
    """The transpose of a product of distinct matrices."""
    names = [f"A{k}" for k in range(length)]
    right = " @ ".join(f"{name}.T" for name in reversed(names))
    return Sample(_square(names), f"({' @ '.join(names)}).T == {right}")


def distributed(terms: int) -> Sample:
    """A product of two sums, expanded: as many terms as there are pairs."""
    count = round(terms**0.5)
    left, right = [f"A{k}" for k in range(count)], [f"B{k}" for k in range(count)]
    pairs = " + ".join(f"{a} @ {b}" for b in right for a in left)
    says = f"({' + '.join(left)}) @ ({' + '.join(right)}) == {pairs}"
    return Sample(_square([*left, *right]), says)


def reordered(terms: int) -> Sample:
    """A sum of distinct words of three letters, against the same in another order."""
    letters = "ABCEFGHKLM"
    words = [
        f"{letters[k // 100 % 10]} @ {letters[k // 10 % 10]} @ {letters[k % 10]}"
        for k in range(terms)
    ]
    return Sample(_square(letters), f"{' + '.join(words)} == {' + '.join(reversed(words))}")


def _power(base: str, exponent: int) -> str:
    return " @ ".join([base] * exponent)


FAMILIES = (
    Family("trace of a word, symmetric", "degree", "proved", (2, 4, 6, 8, 12, 16, 24), word_trace),
    Family("trace of distinct symmetric", "degree", "proved", (2, 4, 6, 8, 12, 16), distinct_trace),
    Family("gradient of tr(S^k)", "degree", "proved", (2, 4, 6, 8, 12, 16), trace_gradient),
    Family("tr((A + B)^k), symmetric", "degree", "proved", (2, 4, 6, 8, 10), sum_trace),
    Family("false trace, refuted", "degree", "refuted", (4, 6, 8, 12, 16), false_trace),
    Family("norm2(X)^k", "degree", "proved", (1, 2, 3, 4, 6, 8, 12), norm_power),
    Family("gradient of norm2(X)^k", "degree", "proved", (1, 2, 3, 4, 6, 8, 12), norm_gradient),
    Family("entrywise power of W x", "degree", "proved", (2, 3, 4, 5, 6, 7, 8), entrywise_power),
    Family("transposed product", "degree", "proved", (2, 4, 8, 16, 32), chain),
    Family("product of two sums", "terms", "proved", (4, 16, 64, 256, 1024), distributed),
    Family("sum in another order", "terms", "proved", (1, 10, 100, 300, 1000), reordered),
)

LIMITS = (
    ("trace of degree 8, two symmetric matrices", word_trace(8)),
    ("trace of degree 8, eight symmetric matrices", distinct_trace(8)),
    ("gradient of a trace of degree 8, symmetric", trace_gradient(8)),
    ("false trace of degree 8, symmetric", false_trace(8)),
    ("trace of degree 8 of a sum, 256 words", sum_trace(8)),
    ("norm2(X)**6", norm_power(6)),
    ("gradient of norm2(X)**6", norm_gradient(6)),
)


def timed(sample: Sample) -> tuple[float, str]:
    """Least CPU seconds, and the verdict."""
    best, spent, runs, verdict = float("inf"), 0.0, 0, ""
    while runs < LEAST_RUNS or spent < LEAST_SECONDS:
        start = time.process_time()
        (statement,) = load_claims(sample.text, "growth")
        verdict = decide(statement).verdict
        seconds = time.process_time() - start
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
        if seconds > ENOUGH:
            break
    return best, verdict


def run() -> dict[str, Any]:
    """Time everything, print it."""
    timed(norm_gradient(2))  # warm up
    families: list[dict[str, Any]] = []
    for family in FAMILIES:
        points: list[dict[str, Any]] = []
        for size in family.sizes:
            seconds, verdict = timed(family.claim(size))
            points.append({"size": size, "seconds": seconds, "verdict": verdict})
            if seconds > ENOUGH or verdict != family.verdict:
                break
        unexpected = [p["size"] for p in points if p["verdict"] != family.verdict]
        shown = "  ".join(f"{p['size']}: {1e3 * p['seconds']:.1f}" for p in points)
        print(f"{family.name:32} {family.axis:7} ms by size  {shown}", end="")
        print(f"   NOT {family.verdict.upper()}: {unexpected}" if unexpected else "")
        about = {"name": family.name, "axis": family.axis, "expect": family.verdict}
        families.append({**about, "points": points})
    limits: list[dict[str, Any]] = []
    for name, sample in LIMITS:
        seconds, verdict = timed(sample)
        print(f"{name:45} {1e3 * seconds:7.1f} ms  {verdict}")
        limits.append({"name": name, "seconds": seconds, "verdict": verdict, **asdict(sample)})
    return {"machine": machine(), "families": families, "limits": limits}


def plot(results: dict[str, Any], path: Path) -> None:
    """The figure, from saved results alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for ax, axis, label in zip(
        axes, ("degree", "terms"), ("degree (power)", "number of terms"), strict=True
    ):
        chosen = [family for family in results["families"] if family["axis"] == axis]
        for number, family in enumerate(chosen):
            points = family["points"]
            ax.loglog(
                [p["size"] for p in points],
                [1e3 * p["seconds"] for p in points],
                marker="os^Dvp*XP"[number % 9],
                color=f"C{number}",
                label=family["name"],
            )
        ax.set_xlabel(label)
        ax.set_ylabel("CPU time, ms")
        ax.set_xticks([1, 10, 100, 1000] if axis == "terms" else [1, 2, 4, 6, 8, 12, 16, 24, 32])
        for each in (ax.xaxis, ax.yaxis):
            each.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8, loc="upper left")
    figure.suptitle(f"reading and deciding a claim ({results['machine']})", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> int:
    """Run, save, draw."""
    parser = argparse.ArgumentParser(description="Growth of the prover's time.")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks/growth.json"))
    parser.add_argument("--plot", type=Path, default=Path("out/benchmarks/growth.png"))
    parser.add_argument("--only-plot", action="store_true", help="draw from the JSON that is there")
    options = parser.parse_args()
    if not options.only_plot:
        results = run()
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    plot(json.loads(options.json.read_text()), options.plot)
    print(f"saved {options.json} and {options.plot}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
