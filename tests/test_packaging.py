"""What messages and pages advise to install can be installed; the version stands in one form everywhere."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_extras_that_are_advised_exist():
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    advised = {
        (name, path.name)
        for path in places
        for names in re.findall(r"seqcritic\[([a-z0-9,-]+)\]", path.read_text(encoding="utf-8"))
        for name in names.split(",")
    }
    assert {"hf", "rouge", "prepare", "ray"} <= {name for name, _ in advised}
    assert [pair for pair in sorted(advised) if pair[0] not in PROJECT["optional-dependencies"]] == []


def test_messages_name_no_file_that_an_installed_package_lacks():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            raised = isinstance(node, ast.Call) and ast.unparse(node.func) in ("UserError", "_require", "complain")
            helped = isinstance(node, ast.keyword) and node.arg == "help"
            if raised or helped:
                told = ast.unparse(node)
                assert not re.search(r"\b(docs|benchmarks|contracts)/", told), f"{path.name}: {told}"


def test_every_tracker_and_cluster_has_its_extra():
    from seqcritic.training.trackers import TRACKERS

    assert {*TRACKERS, "ray"} <= PROJECT["optional-dependencies"].keys()
    # They are heavy, and what they do is tested with fakes.
    heavy = ("wandb", "mlflow", "ray")
    assert not any(name in requirement for requirement in PROJECT["optional-dependencies"]["dev"] for name in heavy)


def test_one_version():
    citation, changes = ((ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md"))
    told = dict(re.findall(r"^([\w-]+): (\S+)$", citation, re.MULTILINE))
    assert told["version"] == PROJECT["version"]
    newest, *_ = re.findall(r"^## (.+)$", changes, re.MULTILINE)
    released = f"- {told['date-released']}" if "date-released" in told else "(unreleased)"
    assert newest == f"{told['version'].removesuffix('.dev0')} {released}"
    assert ("date-released" in told) != told["version"].endswith(".dev0")
    assert "Development Status :: 4 - Beta" in PROJECT["classifiers"]
