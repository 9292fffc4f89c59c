"""`seqcritic init`: looks at pairs, chooses what to train on this machine, and writes a recipe."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from seqcritic.data.parallel import read_pairs
from seqcritic.data.tables import READERS
from seqcritic.errors import UserError
from seqcritic.files import write_whole
from seqcritic.progress import set_up_logging
from seqcritic.settings.data import PairFiles
from seqcritic.settings.io import parse_tree, settings_from
from seqcritic.starting.choice import Machine, choose
from seqcritic.starting.recipe import recipe_text, tell_choice, tell_survey
from seqcritic.starting.survey import survey_files

ENDINGS = (".tsv", *READERS)


def init(
    pairs: Sequence[str], out: str | Path, valid: Sequence[str] = (), test: Sequence[str] = ()
) -> tuple[list[str], Path]:
    """Write a recipe for pairs; return what was seen and chosen, a line each, and where the recipe is.

    `pairs`, and `valid` and `test` if there are any, are files with both sides (.tsv, .csv, .jsonl, .parquet),
    or two, source and target, line by line. A file that is there is never overwritten.
    """
    set_up_logging()
    target = Path(out)
    if target.exists():
        raise UserError(f"--out: {target} exists; remove it or give another name")
    given = {"train": pairs, "valid": valid, "test": test}
    splits = {split: files_of(paths) for split, paths in given.items() if paths}
    survey = survey_files(splits["train"], "train")
    shared = {split: survey.num_shared(read_pairs(files, split)) for split, files in splits.items() if split != "train"}
    choice = choose(survey, Machine(os.cpu_count() or 1, torch.cuda.is_available()))
    text = recipe_text(target.stem, survey, choice, splits)
    settings_from(parse_tree(text, target))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    except OSError as error:
        raise UserError(f"--out: cannot write {target}: {error.strerror or error}") from None
    return [*tell_survey(survey, shared), *tell_choice(choice)], target


def files_of(paths: Sequence[str]) -> PairFiles:
    """Return files as the settings name them: those with both sides, or two that are parallel."""
    plain = [path for path in paths if not path.removesuffix(".gz").endswith(ENDINGS)]
    if len(plain) == len(paths) == 2:
        return PairFiles(source=(paths[0],), target=(paths[1],))
    return PairFiles(pairs=tuple(paths))
