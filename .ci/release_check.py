"""What a release has to pass, as a stranger meets it: `make release-check`.

Builds the sdist and, from it alone, the wheel; looks at their content and metadata; installs the wheel in empty
environments outside this tree, one for each Python that is found (3.11 to 3.13), and there runs a shortened demo and
`predict`, with a C compiler and without. Takes some minutes, most of them torch's.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
COMPILERS = ("cc", "gcc", "clang", "c99", "tcc")
DEMO = ["phases.actor.updates=60", "phases.critic.updates=10", "phases.train.updates=10", "training.log_every=10"]
LINES = "tye quixk brewn fxx\njumps ovet thw laxy dog\n"
NEEDED = (
    "py.typed",
    "recipes/demo.yaml",
    "data/embedded.txt.xz",
    "data/NOTICE",
    "pretrained/spelling-paper/description.json",
    "report/page.css",
    "report/page.js",
    "report/templates/document.html",
    "native/kernels.c",
)


def main() -> int:
    """Check everything; say what was done, and what could not be."""
    with tempfile.TemporaryDirectory(prefix="release-check-") as folder:
        wheel, project = build(Path(folder))
        look_into(wheel, project)
        checked = []
        for version in PYTHONS:
            python = find_python(version)
            if python is None:
                say(f"Python {version}: not found here, not checked")
            elif not has_torch(python, Path(folder) / "torch"):
                say(f"Python {version}: torch cannot be had here, not checked")
            else:
                try_installed(wheel, python, Path(folder) / version)
                checked.append(version)
        if not checked:
            raise SystemExit("release-check: no Python was checked")
        say(f"{wheel.name} passes with Python {', '.join(checked)}")
    return 0


def build(folder: Path) -> tuple[Path, dict[str, object]]:
    """Return the wheel, which is made from the sdist, and what pyproject.toml says."""
    tools = folder / "tools"
    venv.create(tools, with_pip=True)
    run(tools / "bin/python", "-m", "pip", "install", "-q", "build")
    run(tools / "bin/python", "-m", "build", "--outdir", folder / "dist", ROOT)
    [sdist], [wheel] = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    require({"LICENSE", "README.md", "SECURITY.md", "CHANGELOG.md", "pyproject.toml"} <= names, "the sdist lacks files")
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    say(f"built {sdist.name} and {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)")
    return wheel, project


def look_into(wheel: Path, project: dict[str, object]) -> None:
    """Check what the wheel holds and says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [place] = [name for name in names if name.endswith(".dist-info/METADATA")]
        told = email.message_from_string(archive.read(place).decode())
    missing = [name for name in NEEDED if f"seqcritic/{name}" not in names]
    require(not missing, f"the wheel lacks {missing}")
    strange = [name for name in names if not name.startswith(("seqcritic/", "seqcritic-"))]
    require(not strange, f"the wheel has files of other packages: {strange}")
    require(told["Version"] == project["version"], "the wheel has another version")
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    require(citation is not None and citation[1] == project["version"], "CITATION.cff has another version")
    require(f"## {told['Version'].partition('.dev')[0]}" in (ROOT / "CHANGELOG.md").read_text(), "no CHANGELOG entry")
    classifiers = told.get_all("Classifier") or []
    wanted = ["Typing :: Typed", *(f"Programming Language :: Python :: {version}" for version in PYTHONS)]
    require(all(each in classifiers for each in wanted), f"classifiers: {classifiers}")
    require(bool(told.get_all("Project-URL")), "no URLs")
    require(told["Description-Content-Type"] == "text/markdown", "README is not the description")
    say(f"{wheel.name}: {len(names)} files, metadata complete")


def find_python(version: str) -> str | None:
    """Return an interpreter of a version: this one, one on the path, or one of pyenv's."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = [shutil.which(f"python{version}"), *map(str, kept)]
    return next((path for path in found if path is not None and answers(path)), None)


def answers(python: str) -> bool:
    """Tell whether an interpreter runs: pyenv leaves names that do not."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def has_torch(python: str, folder: Path) -> bool:
    """Tell whether pip finds the torch of constraints.txt for an interpreter; nothing is installed."""
    command = [python, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--no-deps", "--target", folder]
    asked = [*command, "-c", ROOT / "constraints.txt", "torch"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def try_installed(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel in an empty environment and use it from a folder that knows nothing of this tree."""
    run(python, "-m", "venv", folder / "venv")
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
    run(*pip, wheel)
    # What our messages advise works for whoever has it installed, from wherever it came.
    run(*pip, "--dry-run", "seqcritic[tensorboard]")
    predictions: set[str] = set()
    for has_compiler in (True, False):
        how = "with" if has_compiler else "without"
        work = folder / how
        work.mkdir()
        environment = clean_environment(work, has_compiler)
        seqcritic = folder / "venv/bin/seqcritic"
        told = run(seqcritic, "env", cwd=work, env=environment)
        kernels = re.search(r"^native kernels: (.*)$", told, re.MULTILINE)
        require(kernels is not None and kernels[1].startswith("yes") == has_compiler, f"native kernels: {told}")
        run(seqcritic, "compare", "demo", *DEMO, "--out", "runs/demo", "--jobs", "1", cwd=work, env=environment)
        require((work / "runs/demo/report.html").is_file(), "the demo wrote no report")
        said = run(seqcritic, "predict", "spelling-paper", cwd=work, env=environment, text=LINES)
        require(len(said.splitlines()) == LINES.count("\n"), f"predict said {said!r}")
        predictions.add(said)
        say(f"Python {folder.name}, {how} a compiler: demo and predict ({told_torch(told)})")
    require(len(predictions) == 1, f"a compiler changes predictions: {predictions}")


def clean_environment(work: Path, has_compiler: bool) -> dict[str, str]:
    """Return an environment without traces of this tree, its PATH without compilers if so wanted."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "CC")}
    kept |= {"SEQCRITIC_CACHE": str(work / "cache"), "HOME": str(work)}
    if has_compiler:
        return kept
    tools = work / "tools"  # all but the compilers, by links
    tools.mkdir()
    for place in os.environ.get("PATH", "").split(os.pathsep):
        for tool in Path(place).iterdir() if Path(place).is_dir() else ():
            if tool.name not in COMPILERS and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    return kept | {"PATH": str(tools)}


def told_torch(told: str) -> str:
    """Return the version of torch that `env` printed."""
    found = re.search(r"^torch: (.*)$", told, re.MULTILINE)
    return f"torch {found[1]}" if found else "torch unknown"


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None, text: str = "") -> str:
    """Run a command and return what it printed; what it says goes to the terminal only if it fails."""
    finished = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if finished.returncode:
        raise SystemExit(f"release-check: {' '.join(map(str, command))}\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def require(right: bool, fault: str) -> None:
    """End with a fault in one line."""
    if not right:
        raise SystemExit(f"release-check: {fault}")


def say(line: str) -> None:
    """Tell how far it is."""
    print(f"release-check: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
