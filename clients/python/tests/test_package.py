"""What is packed, and that it is checked and up to date."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT

HERE = ROOT / "clients/python"
BIN = Path(sys.executable).parent
LINTED = [".", "../../deploy", "../../packaging"]


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "generate.py", "--check"],
        [BIN / "mypy"],
        [BIN / "ruff", "check", "--config", "pyproject.toml", *LINTED],
        [BIN / "ruff", "format", "--config", "pyproject.toml", "--check", *LINTED],
    ],
    ids=["generated", "mypy", "ruff check", "ruff format"],
)
def test_the_code_is_checked(command: list[str | Path]) -> None:
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_modules_of_the_readme_have_no_type_errors(tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", (HERE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    modules = [example for example in examples if "Client(" in example and "await" not in example]
    for number, module in enumerate(modules):
        (tmp_path / f"example_{number}.py").write_text(module)
    command = [BIN / "mypy", *tmp_path.iterdir()]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert (len(modules), done.returncode) == (2, 0), done.stdout


def test_the_package_is_built_and_has_what_it_needs(tmp_path: Path) -> None:
    build: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, "."]
    done = subprocess.run(build, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    wheel, sdist = sorted(tmp_path.iterdir(), key=lambda path: path.suffix, reverse=True)
    checked = subprocess.run([BIN / "twine", "check", "--strict", wheel, sdist], stdout=subprocess.PIPE, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    names = zipfile.ZipFile(wheel).namelist()
    modules = {path.name for path in (HERE / "src/pagebucket").iterdir() if path.is_file()}
    assert {name.removeprefix("pagebucket/") for name in names if name.startswith("pagebucket/")} == modules
    assert "py.typed" in modules
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith(f"licenses/{licence}") for name in names), names
        assert (HERE / licence).read_text() == (ROOT / licence).read_text()
    imported = [sys.executable, "-c", "import pagebucket; print(pagebucket.__file__)"]
    said = subprocess.run(imported, cwd=tmp_path, env={"PYTHONPATH": str(wheel)}, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.startswith(str(wheel))
    with tarfile.open(sdist) as packed:
        assert not [name for name in packed.getnames() if "tests" in name or "build" in name]
    versions = [tomllib.loads((directory / file).read_text()) for directory, file in ((HERE, "pyproject.toml"), (ROOT, "Cargo.toml"))]
    assert versions[0]["project"]["version"] == versions[1]["workspace"]["package"]["version"]


def test_it_is_small() -> None:
    written = [path for path in (HERE / "src/pagebucket").glob("*.py") if path.name not in ("_sync.py", "types.py")]
    assert sum(len(path.read_text().splitlines()) for path in written) <= 600
