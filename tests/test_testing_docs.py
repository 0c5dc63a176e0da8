"""What the README and `docs/` say about tests, done as a new user would."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import nonmixing as nm
from nonmixing.algebra import sympy_door
from nonmixing.testing import agreement, implements, strategies

pytest_plugins = ["pytester"]

LOADED = nm.GradientFlow, nm.integrate, nm.solve, sympy_door, agreement, implements, strategies
"""What a run inside this process imports is dropped after it, unless it was there before."""

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAPER = ROOT / "docs" / "examples" / "my_paper"


@pytest.fixture
def paper(pytester):
    shutil.copytree(PAPER, pytester.path, dirs_exist_ok=True)
    return pytester


def test_the_blocks_of_the_how_to_run():
    """A recorded run as a trajectory."""
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "testing.md", "exec"), names)
    assert names["recorded"].source == "my loop"


def masked(lines: list[str]) -> list[str]:
    """Lines without their numbers: another counterexample is as good."""
    return [re.sub(r"\[\[-?\d+\]\]", "[[.]]", line.rstrip()) for line in lines]


def test_the_readme_fails_then_passes(pytester):
    """The README's test fails with what the README shows, and passes once the slip is put right."""
    (_, section) = README.split("## In your own tests")
    section = section.split("\n## ")[0]
    (test,) = re.findall(r"```py\n(.*?)```", section, flags=re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", section, flags=re.DOTALL)
    right = test.replace("+ U * U.T * E)", "- U * U.T * E)")
    assert right != test
    pytester.makepyfile(test_derivation=test, test_put_right=right)
    result = pytester.runpytest_subprocess("-rA")
    result.assert_outcomes(failed=1, passed=1)
    assert "PASSED test_put_right.py::test_my_flow_equation" in result.outlines
    printed, lines = masked(result.outlines), masked(shown.splitlines())
    begin = printed.index(lines[0])
    assert printed[begin : begin + len(lines)] == lines


def test_the_example_passes(paper):
    paper.runpytest_inprocess().assert_outcomes(passed=15)


SLIPS = {
    "test_gradients": ("model.py", "residual.T @ U", "residual @ U.T"),
    "test_step": ("model.py", "V - rate * in_v", "V + rate * in_v"),
    "test_flow_of_the_operator": ("tests/test_derivations.py", "U * U.T * E)", "U * U.T * E / 2)"),
    "balance-to-second-order": ("claims/two_layer.claims.toml", "eta ** 2 *", "eta *"),
}


def test_the_example_notices(paper):
    for place, old, new in SLIPS.values():
        path = paper.path / place
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    result = paper.runpytest_inprocess("-rf", "--deselect", "tests/test_properties.py")
    result.assert_outcomes(passed=9, failed=4, deselected=2)
    failed = {line.split()[1].split("::")[1] for line in result.outlines if "FAILED" in line}
    assert failed == set(SLIPS)
