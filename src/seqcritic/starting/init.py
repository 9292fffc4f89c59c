"""`seqcritic init`: looks at pairs, chooses what to train on this machine, and writes a recipe."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from seqcritic.data.held_out import held_out_for
from seqcritic.data.parallel import read_pairs
from seqcritic.data.tables import READERS
from seqcritic.errors import UserError
from seqcritic.files import write_whole
from seqcritic.progress import set_up_logging
from seqcritic.settings.data import ColumnSettings, PairFiles
from seqcritic.settings.io import parse_tree, settings_from
from seqcritic.starting.choice import PATIENCE, Choice, Chosen, Machine, choose
from seqcritic.starting.survey import SideSurvey, Survey, survey_files

ENDINGS = (".tsv", *READERS)
METHOD = {
    "name": "actor-critic",
    "likelihood_weight": 0.1,
    "variance_penalty": 0.03,
    "gamma_theta": 0.1,
    "gamma_phi": 0.1,
    "correction": 0.5,  # docs/results/correction.md
    "reward_dropout": "held",  # without it, few pairs are soon learnt by heart in the last phase
}
FEW_HELD_OUT = 20
COLUMNS = {f"data.columns.{side}": side for side in ("source", "target")}
Splits = Mapping[str, PairFiles]


def init(
    pairs: Sequence[str], out: str | Path, valid: Sequence[str] = (), test: Sequence[str] = ()
) -> tuple[list[str], Path]:
    """Write a recipe for pairs; return what was seen and chosen, a line each, and where the recipe is.

    `pairs`, and `valid` and `test` if there are any, are files with both sides (.tsv, .csv, .jsonl, .parquet),
    or two, source and target, line by line. Where their columns have other names, `data.columns.source=NAME` and
    `data.columns.target=NAME` stand among them. A file that is there is never overwritten.
    """
    set_up_logging()
    target = Path(out)
    # Told first, before pairs are looked at for minutes.
    if target.exists():
        raise UserError(f"--out: {target} exists; remove it or give another name")
    columns = columns_of([*pairs, *valid, *test])
    given = {
        split: [path for path in paths if path.partition("=")[0] not in COLUMNS]
        for split, paths in {"train": pairs, "valid": valid, "test": test}.items()
    }
    if not given["train"]:
        raise UserError("init: name at least one file of pairs")
    splits = {split: files_of(paths) for split, paths in given.items() if paths}
    survey = survey_files(splits["train"], "train", columns)
    others = {split: files for split, files in splits.items() if split != "train"}
    shared = {split: survey.num_shared(read_pairs(files, split, columns)) for split, files in others.items()}
    choice = choose(survey, Machine(os.cpu_count() or 1, torch.cuda.is_available()))
    held = held_out_shares(choice, splits)
    kept_apart = count_held_out(survey, held)
    text = recipe_text(target.stem, survey, choice, splits, columns)
    # Read as `train` will read it, so that no recipe is written that cannot be trained.
    settings_from(parse_tree(text, target))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
    except OSError as error:
        raise UserError(f"--out: cannot write {target}: {error.strerror or error}") from None
    return [*tell_survey(survey, shared), *tell_held_out(kept_apart), *tell_choice(choice)], target


def files_of(paths: Sequence[str]) -> PairFiles:
    """Return files as the settings name them: those with both sides, or two that are parallel."""
    plain = [path for path in paths if not path.removesuffix(".gz").endswith(ENDINGS)]
    # All else is taken for files with both sides; what is none of these is told when it is read.
    if len(plain) == len(paths) == 2:
        return PairFiles(source=(paths[0],), target=(paths[1],))
    return PairFiles(pairs=tuple(paths))


def columns_of(given: Sequence[str]) -> ColumnSettings:
    """Return what the settings among some arguments say of the columns."""
    named = {COLUMNS[key]: name for key, _, name in (each.partition("=") for each in given) if key in COLUMNS and name}
    return ColumnSettings(**named)


def held_out_shares(choice: Choice, splits: Splits) -> dict[str, float]:
    """Return which shares of the sources are kept apart for the splits that have no files."""
    if "valid" in splits:
        return {}
    return {split: choice.held_out for split in ("valid", "test") if split not in splits}


def count_held_out(survey: Survey, shares: Mapping[str, float]) -> dict[str, int]:
    """Return how many of the pairs looked at are kept apart for each split; refuse too few to keep any."""
    places = [held_out_for(pair.source, shares) for pair in survey.surveyed]
    counts = {split: places.count(split) for split in shares}
    lacking = [split for split in (*shares, "train") if split not in places]
    if lacking:
        raise UserError(
            f"train: {survey.num_sources:,} different sources are too few to keep some apart, none is left for "
            f"{' and '.join(lacking)}; give more pairs, or --valid and --test"
        )
    return counts


def tell_held_out(counts: Mapping[str, int]) -> list[str]:
    """Return how many pairs are kept apart, and whether that is enough to go by, a line each."""
    if not counts:
        return []
    told = ", ".join(f"{count:,} for {split}" for split, count in counts.items())
    few = [split for split, count in counts.items() if count < FEW_HELD_OUT]
    warned = (
        f"warning: scores on so few pairs as those of {' and '.join(few)} are chance; give more, or --valid and --test"
    )
    return [f"kept apart by a hash of the source: {told}", *[warned] * bool(few)]


def tell_survey(survey: Survey, shared: Mapping[str, int]) -> list[str]:
    """Return what was seen, a line each; `shared` counts the pairs of other splits whose source is trained on."""
    looked_at = f", the first {len(survey.surveyed):,} looked at" if survey.num_pairs > len(survey.surveyed) else ""
    lines = [f"{survey.num_pairs:,} pairs, {survey.num_sources:,} different sources{looked_at}"]
    counts = {
        "repeat an earlier pair": survey.num_repeated,
        "have an empty side and are left out": survey.num_empty,
        "have the same text on both sides": survey.num_equal,
    }
    lines += [f"{count:,} of the pairs {what}" for what, count in counts.items() if count]
    if survey.num_with_several:
        lists = 'a .jsonl file with a list of them in one "target" lets scores know all'
        advice = f"; {survey.num_scattered:,} of them in several pairs: {lists}" if survey.num_scattered else ""
        lines.append(f"{survey.num_with_several:,} sources have several targets{advice}")
    lines += [
        f"warning: {count:,} pairs of {split} have a source that is trained on; its score will be too good"
        for split, count in shared.items()
        if count
    ]
    return [*lines, *_tell_side("sources", survey.source), *_tell_side("targets", survey.target)]


def tell_choice(choice: Choice) -> list[str]:
    """Return what was chosen and why, a line each."""
    told = {
        "source tokens": choice.source_tokens,
        "target tokens": choice.target_tokens,
        "longest pair": choice.maximum_length,
        "score": choice.score,
        "width": choice.hidden,
        "dropout": choice.dropout,
        "updates": choice.actor_updates,
    }
    return [f"{name}: {_show(chosen)} ({chosen.why})" for name, chosen in told.items()]


def recipe_text(
    name: str, survey: Survey, choice: Choice, splits: Splits, columns: ColumnSettings | None = None
) -> str:
    """Return a recipe with a comment for every choice."""
    width, critic = choice.hidden.value, min(128, int(str(choice.hidden.value)))
    rate = 0.002
    held = held_out_shares(choice, splits)
    lines = [
        f"# Written by seqcritic init for {survey.num_pairs:,} pairs; change what you like, all settings are in",
        "# `seqcritic validate` of this file. Train by: seqcritic train FILE --out runs/NAME",
        # In JSON's quotes, which YAML reads: a file may have any name.
        f"name: {json.dumps(name)}",
        f"description: {json.dumps(f'{survey.num_pairs:,} pairs; written by seqcritic init')}",
        f"threads: {choice.threads}",
        "data:",
        "  task: translation",
        *(f"  {split}: {_flow(_files(files))}" for split, files in splits.items()),
    ]
    if columns not in (None, ColumnSettings()):
        lines.append(f"  columns: {_flow(columns.model_dump())}")
    if held:
        lines += [
            "  # Kept apart by a hash of the source, so that no source is on two sides.",
            f"  held_out: {_flow(held)}",
        ]
    if "valid" in splits or survey.num_sources > 20_000:
        lines.append("  valid_size: 1000  # evaluated often: a thousand pairs tell enough")
    lines += [
        *_commented("  source_tokens", choice.source_tokens),
        *_commented("  target_tokens", choice.target_tokens),
        *_commented("  maximum_length", choice.maximum_length),
        *_commented("length", choice.length_factor, "{factor: %s}"),
        f"# Width: {choice.hidden.why}. Dropout: {choice.dropout.why}.",
        f"actor: {{embedding: {width}, hidden: {width}, attention: {width}, initial_range: null, "
        f"dropout: {choice.dropout.value}}}",
        "# The critic is told what each next token adds to the score, and learns what will follow.",
        f"critic: {{embedding: {critic}, hidden: {critic}, attention: {critic}, initial_range: null, "
        "reads_actor_states: false, residual_on: lookahead}",
        *_commented("score", choice.score, "{name: %s, shaping: true}"),
        f"method: {_flow(METHOD)}",
        "phases:",
        f"  # Likelihood: {choice.actor_updates.why}; ends early after {PATIENCE} evaluations without a better score.",
        f"  actor: {{updates: {choice.actor_updates.value}, learning_rate: {rate}, final_learning_rate: {rate / 10:g}, "
        f"patience: {PATIENCE}}}",
        f"  critic: {{updates: {choice.critic_updates}, learning_rate: 0.001, final_learning_rate: 0.0003}}",
        "  # For the score itself; the best actor on valid is the result, that of the pre-training among them.",
        f"  train: {{updates: {choice.train_updates}, learning_rate: 0.0001, final_learning_rate: 0.00001, "
        f"patience: {PATIENCE}}}",
        f"training: {{batch: {choice.batch}, evaluate_every: {choice.evaluate_every}}}",
    ]
    return "\n".join(lines) + "\n"


def _tell_side(name: str, side: SideSurvey) -> list[str]:
    lines = [
        f"{name}: {side.num_characters} different characters; of a line {side.characters[0]} characters and "
        f"{side.symbols[0]} words between spaces (99 of 100: at most {side.characters[1]} and {side.symbols[1]})"
    ]
    if side.symbols[0] > 1:  # else every line is a word, most of them new
        # Much larger vocabularies than there are words all leave the same unknown.
        shares = {size: share for size, share in side.unknown_words.items() if size < 3 * side.num_words}
        unknown = ", ".join(f"{100 * share:.1f} % with {size:,}" for size, share in shares.items())
        lines += [
            f"{name}: {side.num_words:,} different words" + f"; unknown in unseen lines: {unknown}" * bool(unknown)
        ]
    return lines


def _commented(key: str, chosen: Chosen, form: str = "%s") -> list[str]:
    indent = " " * (len(key) - len(key.lstrip()))  # the comment stands above its key
    return [f"{indent}# {chosen.why}", f"{key}: {form % _show(chosen)}"]


def _show(chosen: Chosen) -> str:
    return _flow(chosen.value) if isinstance(chosen.value, dict) else str(chosen.value)


def _flow(tree: Mapping[str, Any]) -> str:
    """Return a mapping on one line; JSON's values are YAML's."""
    return "{" + ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in tree.items()) + "}"


def _files(files: PairFiles) -> dict[str, list[str]]:
    return {name: list(paths) for name, paths in files if paths}
