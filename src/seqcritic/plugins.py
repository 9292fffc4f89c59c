"""Importing what others have written: the modules that a recipe names under `plugins`, and installed packages.

A module registers its methods when it is imported (contracts/method_registry.py).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from seqcritic.errors import UserError


def import_plugins(names: Any) -> None:
    """Import the modules of a list, or of a text with commas; whatever else it is, the settings refuse."""
    parts = names.split(",") if isinstance(names, str) else names if isinstance(names, list | tuple) else ()
    for name in parts:
        if isinstance(name, str) and name.strip():
            import_plugin(name.strip())


def import_plugin(name: str) -> ModuleType:
    """Import a module by its dotted name, from the current folder too; a fault is a UserError in one line."""
    # A path or a relative name, of which import_module would complain in its own words.
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"plugins: '{name}' names no module; write 'my_methods' for my_methods.py")
    if os.getcwd() not in sys.path:
        # The path of an installed command begins with the command's folder, not with the current one.
        sys.path.insert(0, os.getcwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # The plugin is there, and a module that it imports is not.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise UserError(f"plugins: importing '{name}' failed: {error}") from error
        raise UserError(
            f"plugins: no module '{error.name}'; write it without '.py', and start seqcritic in its folder or set "
            "PYTHONPATH to that"
        ) from error
    except (Exception, SystemExit) as error:  # a script may end by sys.exit
        raise UserError(f"plugins: importing '{name}' failed: {_in_one_line(error)}") from error


def _in_one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
