"""What the tests share: the hypothesis profile, the command, and folders of made-up claims."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy  # noqa: F401  # pyright: ignore[reportUnusedImport]  # its BLAS is what is limited
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from nonmixing.cli import main

# The tests' matrices are small, and several processes run them: more threads only wait for turns.
threadpool_limits(limits=1)

settings.register_profile("nonmixing", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("nonmixing")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs `nonmixing` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """Runs `nonmixing` as a process of its own, in an empty folder."""

    def run(*arguments: object) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "nonmixing", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


TRUE = """
[matrices]
U = ["m", "r"]
V = ["n", "r"]

[[claim]]
id = "transpose"
says = "(U @ V.T).T == V @ U.T"
"""

FALSE = """
[matrices]
U = ["m", "r"]

[[claim]]
id = "doubled"
says = "U + U == 3 * U"
"""

SCRIPTS: Mapping[str, str] = {
    "P1": '''
        """P1. A transpose of a product."""
        from nonmixing.claim import Claim, from_text
        claim = Claim(id="P1", title="A transpose of a product", source="test",
                      statements=from_text("""<TRUE>"""))
        ''',
    "P2": '''
        """P2. Two is three, which fails, as it must."""
        from nonmixing.claim import Claim, from_text
        claim = Claim(id="P2", title="Two is three", source="test",
                      statements=from_text("""<FALSE>""", {"doubled": "refuted"}))
        ''',
    "P3": '''
        """P3. Two is three, held to be true."""
        from nonmixing.claim import Claim, from_text
        claim = Claim(id="P3", title="Two is three", source="test",
                      statements=from_text("""<FALSE>"""))
        ''',
    "S1": '''
        """S1. A number inside its band, one outside expected so, and a picture."""
        from pathlib import Path
        from nonmixing.claim import Claim, Experiment, judge

        def near(quick):
            return judge("simulation", measured=1.05 if quick else 1.0625, predicted=1.0,
                         tolerance=0.2, because="theory says so", scope="one number",
                         nulls={"frozen": 0.0}, seed=3)

        def far(quick):
            return judge("training", measured=[1.0, 2.5], predicted=1.0, tolerance=0.2,
                         because="theory says so", scope="two numbers")

        def draw(results, folder):
            path = folder / "dot.txt"
            path.write_text(str(results["simulation"][0]["measured"]))
            return path

        claim = Claim(id="S1", title="Inside", source="test", simulation=(Experiment(near),),
                      training=(Experiment(far, "unsupported", name="far"),), figure=draw)
        ''',
    "S2": '''
        """S2. A number outside its band."""
        from nonmixing.claim import Claim, Experiment, judge

        def far(quick):
            return judge("simulation", measured=[1.0, 7.25], predicted=1.0, tolerance=0.2,
                         because="theory says so", scope="two numbers")

        claim = Claim(id="S2", title="Outside", source="test", simulation=(Experiment(far),))
        ''',
    "S3": '''
        """S3. A measurement that nothing would pass as well."""
        from nonmixing.claim import Claim, Experiment, judge

        def idle(quick):
            return judge("simulation", measured=1.0, predicted=1.0, tolerance=0.2,
                         because="theory says so", scope="one number", nulls={"frozen": 1.1})

        claim = Claim(id="S3", title="Idle", source="test", simulation=(Experiment(idle),))
        ''',
    "E1": '''
        """E1. Evidence that cannot be had."""
        from nonmixing.claim import Claim, Experiment

        def broken(quick):
            return 1 / 0

        claim = Claim(id="E1", title="Broken", source="test", simulation=(Experiment(broken),))
        ''',
    "E2": '''
        """E2. No Python."""
        claim = (
        ''',
}


@pytest.fixture
def proofs(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder with the made-up claims of the given ids."""

    def make(*ids: str) -> Path:
        place = tmp_path / "proofs"
        place.mkdir(exist_ok=True)
        for name in ids:
            text = dedent(SCRIPTS[name]).replace("<TRUE>", TRUE).replace("<FALSE>", FALSE)
            (place / f"{name}.py").write_text(text, encoding="utf-8")
        return place

    return make
