"""Rows of nested tensors: what a batch, a sample or a beam does to everything that is known of its examples.

A tree is a tensor whose dimension 0 counts rows, None, or a tuple, named tuple, list or dict of trees. What has no
rows (weights prepared once for all of them) is wrapped in `Shared` and passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

Tree = TypeVar("Tree")
Content = TypeVar("Content")


@dataclass(frozen=True)
class Shared(Generic[Content]):
    """A part of a tree that is the same for all rows."""

    content: Content


def select(tree: Tree, rows: Tensor) -> Tree:
    """Some rows: by their indices [N], or where a mask [B] is True."""
    return _map(lambda tensor: tensor[rows], tree)


def repeat(tree: Tree, times: int) -> Tree:
    """Every row `times` times in a row."""
    # Interleaved: the copies of an example stay together, and viewing [B · times, …] as [B, times, …] parts them.
    return tree if times == 1 else _map(lambda tensor: tensor.repeat_interleave(times, dim=0), tree)


def detach(tree: Tree) -> Tree:
    """The same values as constants."""
    return _map(lambda tensor: tensor.detach(), tree)


def cat(trees: Sequence[Tree]) -> Tree:
    """The rows of several trees of one structure, one after the other."""
    return _map(lambda *tensors: torch.cat(tensors), *trees)


def _map(change: Callable[..., Tensor], *trees: Tree) -> Tree:
    """Apply a function to the tensors that stand at the same position of all trees."""
    first: Any = trees[0]
    # Else `cat` would take the first tree's None, or what it shares, for that of all.
    assert all(type(tree) is type(first) for tree in trees), "trees of one structure"
    if first is None or isinstance(first, Shared):
        return cast(Tree, first)
    if isinstance(first, Tensor):
        return cast(Tree, change(*trees))
    if isinstance(first, dict):
        return cast(Tree, {key: _map(change, *(cast(Any, tree)[key] for tree in trees)) for key in first})
    parts = [_map(change, *part) for part in zip(*cast(Any, trees), strict=True)]
    named = hasattr(first, "_fields")  # a named tuple takes its fields one by one
    return cast(Tree, type(first)(*parts) if named else type(first)(parts))
