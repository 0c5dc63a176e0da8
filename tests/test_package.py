"""The package as it is imported and as it is installed."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from conftest import TRUE
from hatchling.builders.wheel import WheelBuilder

import nonmixing as nm

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "matplotlib", "scipy.integrate", "sympy", "sklearn", "rich")


def loaded(code: str, folder: Path) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after running some code."""
    code += f"\nimport sys; print(*[name for name in {HEAVY!r} if name in sys.modules], sep=',')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    return set(done.stdout.splitlines()[-1].split(",")) - {""}


def test_import_is_light(tmp_path):
    assert loaded("import nonmixing", tmp_path) == set()
    assert "sympy" in loaded("import nonmixing; nonmixing.norm2", tmp_path), "the test must see it"


@pytest.mark.parametrize("option", ["", ", '--json'"])
def test_check_is_light(tmp_path, option):
    (tmp_path / "claims.toml").write_text(TRUE)
    code = f"from nonmixing.cli import main; assert main(['check', 'claims.toml'{option}]) == 0"
    assert loaded(code, tmp_path) == set()


def test_every_public_name_is_there():
    assert sorted(nm.__all__) == list(nm.__all__)
    for name in nm.__all__:
        assert getattr(nm, name) is not None
        assert name in dir(nm)
    assert isinstance(nm.plot, ModuleType)
    assert set(nm.__all__) == set(nm._HOME)
    with pytest.raises(AttributeError, match="unmixing"):
        _ = nm.unmixing  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "first", ["import nonmixing.compare", "import nonmixing.ledger", "nm.compare", "nm.plot"]
)
def test_compare_is_the_function_whatever_was_imported_first(first, tmp_path):
    code = (
        f"import nonmixing as nm\n{first}\nfrom types import FunctionType\n"
        "from nonmixing.compare import compare\nassert nm.compare is compare\n"
        "assert isinstance(nm.compare, FunctionType)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert isinstance(nm.compare, FunctionType)


def test_the_version_is_one():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {nm.__version__}\n" in citation


def test_the_wheel_holds_everything_and_runs(tmp_path):
    """Unpacked and run outside the checkout, the wheel finds its own claims."""
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    place = tmp_path / "installed"
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(place)
        names = set(wheel.namelist())
    assert "nonmixing/py.typed" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"nonmixing", f"nonmixing-{nm.__version__}.dist-info"}
    for kind in ("proofs", "simulations"):
        here = {path.name for path in (ROOT / kind).glob("*.py")}
        assert {f"nonmixing/{kind}/{name}" for name in here} <= names
    code = (
        f"import sys; sys.path.insert(0, {str(place)!r})\n"
        "from nonmixing import ledger\nfrom nonmixing.cli import main\n"
        f"assert str(ledger.folder('proofs')).startswith({str(place)!r})\n"
        "assert main(['list']) == 0"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    claims = {path.stem for path in (ROOT / "proofs").glob("[!_]*.py")}
    assert claims <= {line.split()[0] for line in done.stdout.splitlines()}


def test_constraints_pin_what_the_project_asks_for():
    """A fresh machine gets the tested releases: every direct dependency has its pin."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        asked += extra
    names = {re.split(r"[<>=\[]", requirement)[0].lower() for requirement in asked}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if "==" in line}
    assert names - {"nonmixing"} <= pinned


def test_readme_examples_run(tmp_path, monkeypatch):
    """The README's Python blocks run as they stand, and its terminal session says what it shows."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        names: dict[str, object] = {}
        exec(compile(block, "README.md", "exec"), names)
        for name, value in names.items():
            if name.startswith("test_") and callable(value):
                value()


def test_readme_session(tmp_path, command):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (paper,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (session,) = re.findall(r"\$ nonmixing check paper.toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    done = command("check", "paper.toml")

    def untimed(output: str) -> list[str]:
        return [re.sub(r" +\d+(\.\d+)? m?s$", "", line) for line in output.splitlines()]

    assert untimed(done.stdout) == untimed(session)


def test_the_package_goes_to_other_processes() -> None:
    """As a function of a script that mentions it does, which cloudpickle sends by value."""
    import cloudpickle

    import nonmixing

    assert cloudpickle.loads(cloudpickle.dumps(lambda: nonmixing))() is nonmixing
