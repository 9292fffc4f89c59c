"""The rooms of the house and the direction of imports: a room sees only the rooms to its left."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import seqcritic

SOURCE = Path(seqcritic.__file__).parent
LEAVES = {
    "errors",
    "draws",
    "settings.bounds",
    "files",
    "progress",
    "settings.base",
    "settings.data",
    "settings.methods",
    "settings.scores",
    "settings.tree",
}
MATHEMATICS = LEAVES | {"data", "tensors", "contracts", "native", "models", "decoding", "scores", "methods"}
TRAINING = MATHEMATICS | {"settings.io", "evaluation.evaluate", "evaluation.bootstrap", "training"}
USE = TRAINING | {"evaluation.run", "evaluation.stored", "evaluation.tuning", "report"}
ALLOWED = {
    "errors": set(),
    "draws": set(),
    "files": {"errors"},
    "progress": set(),
    "plugins": {"errors"},
    "settings.bounds": set(),
    "settings.base": {"settings.bounds"},
    "settings.data": {"settings.bounds", "settings.base", "contracts"},
    "settings.methods": {"errors", "settings.base", "contracts"},
    "settings.scores": {"settings.base", "settings.data", "contracts"},
    "settings.tree": {
        "settings.base",
        "settings.data",
        "settings.methods",
        "settings.scores",
        "plugins",
        "contracts",
    },
    "settings.io": LEAVES | {"contracts"},
    "tensors": set(),
    "contracts": {"errors", "plugins", "settings.base", "settings.data", "tensors"},
    "data": LEAVES | {"contracts"},
    "native": {"errors", "files"},
    "models": LEAVES | {"data", "native", "tensors", "contracts"},
    "decoding": LEAVES | {"data", "tensors", "contracts"},
    "scores": {"errors", "contracts"},
    "methods": MATHEMATICS - {"native"},
    "evaluation.bootstrap": {"data", "contracts"},
    "evaluation.evaluate": MATHEMATICS - {"native", "models", "methods", "tensors"},
    "training": TRAINING | {"evaluation.stored"},
    "report": set(),
    "evaluation.run": USE - {"report"},
    "evaluation.stored": USE - {"report"},
    "evaluation.tuning": USE - {"report"},
    "comparing": USE - {"native", "models", "methods", "tensors"},
    "analysis": USE - {"native", "settings.io"},
    "corpora": {"errors", "files", "progress", "data"},
    "testing": MATHEMATICS - {"native"} | {"analysis"},  # it enumerates what methods and diagnoses estimate
    "starting": LEAVES | {"contracts", "data", "settings.io"},
    "commands": USE | {"comparing", "analysis", "corpora", "starting"},
    "cli_faults": {"errors"},
    "cli": LEAVES | {"commands", "cli_faults"},
    "__main__": {"cli"},
}
SPLIT = ("settings", "evaluation")  # their modules stand at different heights, each is a room
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "yaml.load", "pickle.load", "pickle.loads"}


def room_of(path: Path) -> str:
    return name_room(path.relative_to(SOURCE).with_suffix("").parts)


def name_room(parts: Sequence[str]) -> str:
    return ".".join(parts[: 2 if parts[0] in SPLIT else 1])


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules = [node.module] if node.module != "seqcritic" else [f"seqcritic.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        rooms |= {name_room(module.split(".")[1:]) for module in modules if module.startswith("seqcritic.")}
    return rooms


def test_imports_go_one_way():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = room_of(path)
        if not room.endswith("__init__") and room not in SPLIT:
            strange = imported_rooms(path) - ALLOWED[room] - {room}
            wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(strange)]
    assert wrong == []


def test_nobody_but_its_own_package_knows_the_gru():
    # The worlds of `testing` need some actor to enumerate; all others are given theirs by the registry.
    strangers = [path for path in SOURCE.rglob("*.py") if not {"gru", "testing"} & set(path.relative_to(SOURCE).parts)]
    knowing = [
        str(path.relative_to(SOURCE))
        for path in strangers
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import) and "models.gru" in ast.unparse(node)
    ]
    assert knowing == []


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


def test_a_single_process_does_not_load_what_spreads_weights_over_several():
    code = "import sys, seqcritic.training.trainer; assert 'torch.distributed.fsdp' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
