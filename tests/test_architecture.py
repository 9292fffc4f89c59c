"""The rooms of the house and the direction of imports: a room sees only the rooms to its left."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import seqcritic

SOURCE = Path(seqcritic.__file__).parent
LEAVES = {
    "errors",
    "cache_folder",
    "draws",
    "bounds",
    "digests",
    "sections",
    "data_settings",
    "method_settings",
    "config",
}
ALLOWED = {
    "errors": set(),
    "cache_folder": {"errors"},
    "draws": set(),
    "bounds": set(),
    "digests": set(),
    "sections": {"bounds"},
    "data_settings": {"bounds", "sections"},
    "method_settings": {"errors", "sections", "contracts"},
    "plugins": {"errors"},
    "config": {"sections", "data_settings", "method_settings", "plugins", "contracts"},
    "settings_io": LEAVES | {"contracts"},
    "data": LEAVES | {"contracts"},
    "native": {"errors", "cache_folder"},
    "tensors": set(),
    "contracts": {"errors", "plugins", "sections", "data_settings", "tensors"},
    "models": LEAVES | {"data", "native", "tensors", "contracts"},
    "decoding": LEAVES | {"data", "tensors", "contracts"},
    "scores": {"errors", "contracts"},
    "methods": LEAVES | {"data", "tensors", "contracts", "models", "decoding", "scores"},
    "bootstrap": {"data", "contracts"},
    "evaluation": LEAVES | {"data", "contracts", "decoding", "scores"},
    "training": LEAVES
    | {
        "settings_io",
        "data",
        "native",
        "contracts",
        "models",
        "decoding",
        "scores",
        "methods",
        "bootstrap",
        "evaluation",
    },
    "report": set(),
    "inspecting": LEAVES | {"data", "contracts", "models", "decoding", "methods", "evaluation", "training", "report"},
    "comparing": LEAVES
    | {"settings_io", "data", "contracts", "decoding", "bootstrap", "evaluation", "training", "report"},
    "diagnosing": LEAVES
    | {
        "data",
        "tensors",
        "contracts",
        "models",
        "decoding",
        "methods",
        "evaluation",
        "training",
        "inspecting",
        "report",
    },
    "preparing": {"errors", "digests", "data"},
    "commands": LEAVES
    | {"settings_io", "decoding", "training", "inspecting", "comparing", "diagnosing", "preparing", "report"},
    "cli": LEAVES | {"commands"},
    "__main__": {"cli"},
}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "yaml.load", "pickle.load", "pickle.loads"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules = [node.module] if node.module != "seqcritic" else [f"seqcritic.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        rooms |= {module.split(".")[1] for module in modules if module.startswith("seqcritic.")}
    return rooms


def test_imports_go_one_way():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = room_of(path)
        if room != "__init__":
            strange = imported_rooms(path) - ALLOWED[room] - {room}
            wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(strange)]
    assert wrong == []


def test_no_file_is_longer_than_four_hundred_lines():
    long = [str(path) for path in SOURCE.rglob("*.py") if len(path.read_text(encoding="utf-8").splitlines()) > 400]
    assert long == []


def test_nothing_is_unpickled_or_evaluated():
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
            if isinstance(node, ast.Import | ast.ImportFrom) and "pickle" in ast.unparse(node):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []


def test_the_package_imports_without_torch():
    code = "import sys, seqcritic, seqcritic.cli; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
