"""A trained actor in a folder of its own, to be given away: its weights, what they need to predict, and a card.

Of the run it holds no text, no paths and none of the other networks.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.batch import Batch
from seqcritic.decoding.search import GREEDY, find_best
from seqcritic.errors import UserError
from seqcritic.evaluation.stored import EVALUATIONS_FOLDER, StoredEvaluations
from seqcritic.files import unseal
from seqcritic.settings.data import EMBEDDED, SPLITS, OwnTaskSettings, SpellingSettings, TranslationSettings
from seqcritic.settings.tree import Settings
from seqcritic.training.card import Origin, TestResult, introduce_pretrained, write_card
from seqcritic.training.checkpoint import COUNTS, load_weights, weights_of, write_folder
from seqcritic.training.model import Model, load_model
from seqcritic.training.packaged import CARD_FILE
from seqcritic.training.tracking import read_metrics

SAMPLE = 1000  # validation sentences on which weights of half the precision must predict the same
README = "README.md"  # where others look for a model card
RESULT_FIELDS = ("score_name", "score", "interval", "sentences", "signature")


def export(
    run: str | Path,
    out: str | Path,
    card: str | Path | None = None,
    results: Sequence[str] = (),
    half: bool = False,
    *,
    actor: Actor | None = None,
) -> Path:
    """Write the actor of a finished run to the new folder `out` and return it.

    `card` is a file to take as the model card; without it a card is written from the run, with its score if it was
    compared or reported, and from `results`, files that `evaluate --json` has printed. `half` stores 16 bits a weight,
    if that changes no prediction of a sample. `actor` is one of a run whose folder cannot describe it.

    A Hugging Face model becomes a folder that plain transformers loads, the card its README.md.
    """
    target = Path(out)
    if target.exists():
        raise UserError(f"out: {target} exists already; remove it, or give another folder")
    model = load_model(run, "cpu") if actor is None else load_model(run, "cpu", actor=actor)
    if half and model.actor.exports_itself:
        raise UserError("half: transformers loads the folder in any precision (dtype=…); export without it")
    if not model.description["progress"]["finished"]:
        raise UserError(f"{run} is not finished; let it finish, then export it")
    weights = weights_of(model.actor)
    origin = Origin(
        name=target.resolve().name,
        settings=model.settings,
        text=text_names(model.settings),
        progress=model.description["progress"],
        valid_score=_best_valid_score(run),
        num_weights=sum(weight.numel() for weight in weights.values()),
        half=half,
        results=(*_stored_results(run), *(read_result(path) for path in results)),
    )
    text = read_text(card, "card") if card is not None else write_card(origin)
    if model.actor.exports_itself:
        _write_pretrained(model.actor, target, text if card is not None else introduce_pretrained(origin))
        return target
    groups = {"actor": _halve(model, weights) if half else weights}
    write_folder(target, groups, describe(model), {CARD_FILE: text})
    return target


def _write_pretrained(actor: Actor, target: Path, card: str) -> None:
    """Write the folder of another library's own format, whole or not at all."""
    # Beside the target, for a rename is atomic within one file system only.
    temporary = target.with_name(f".{target.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        actor.save_pretrained(temporary)
        (temporary / README).write_text(card, encoding="utf-8")
        temporary.rename(target)
    except OSError as error:
        raise UserError(f"out: cannot write {target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # nothing is left of it once it has been renamed


def describe(model: Model) -> dict[str, Any]:
    """Return the description.json of an exported model: what predicting needs and where it is from, without paths."""
    progress = model.description["progress"]
    return {
        "settings": without_paths(model.settings).model_dump(mode="json"),
        "data": model.description["data"],
        "codec": model.codec.to_dict(),
        "progress": {name: progress[name] for name in COUNTS},  # no more than `read_description` asks for
        "text": text_names(model.settings),
    }


def without_paths(settings: Settings) -> Settings:
    """Return the settings without the places of files, the device and the comparison that a run was part of."""
    data = settings.data
    if isinstance(data, OwnTaskSettings):
        return settings.model_copy(update=_neutral())
    # The embedded text names no file and is everywhere: such a model is still evaluated on it.
    nothing: dict[str, Any] = {split: type(getattr(data, split))() for split in SPLITS if not _is_embedded(data, split)}
    if isinstance(data, TranslationSettings):
        nothing["dataset"] = None
    return settings.model_copy(update=_neutral() | {"data": data.model_copy(update=nothing)})


def _neutral() -> dict[str, Any]:
    defaults = Settings()
    return {name: getattr(defaults, name) for name in ("device", "start", "compare")}


def text_names(settings: Settings) -> dict[str, list[str]]:
    """Return the names of the files of each split, without their folders."""
    names: dict[str, list[str]] = {}
    if isinstance(settings.data, OwnTaskSettings):
        return {split: [] for split in SPLITS}
    for split in SPLITS:
        files = getattr(settings.data, split)
        paths = files if isinstance(files, tuple) else (*files.source, *files.target, *files.pairs)
        names[split] = [Path(path).name for path in paths]
        if isinstance(settings.data, TranslationSettings) and settings.data.dataset is not None and not names[split]:
            names[split] = [Path(settings.data.dataset.name).name]
    return names


def read_result(path: str | Path) -> TestResult:
    """Return the figures that `evaluate --json` has printed into a file, by the file's name."""
    try:
        found = unseal(json.loads(read_text(path, "result")))  # its UserError passes, though it is a ValueError
        name, score, (low, high), num_sentences, signature = (found[field] for field in RESULT_FIELDS)
        return TestResult(
            Path(path).stem, str(name), float(score), (float(low), float(high)), int(num_sentences), str(signature)
        )
    except UserError:
        raise
    except (ValueError, KeyError, TypeError):
        raise UserError(f"result: {path} is not what seqcritic evaluate --json prints; let it print it anew") from None


def read_text(path: str | Path, option: str) -> str:
    """Return the text of a file that an option names."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option}: cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{option}: {path} is not valid UTF-8") from None


def _is_embedded(data: Any, split: str) -> bool:
    return isinstance(data, SpellingSettings) and getattr(data, split) == (EMBEDDED,)


def _stored_results(run: str | Path) -> list[TestResult]:
    """Return the score on the run's own test set if the run was evaluated on it and the text is still there."""
    # A run that was never evaluated would be searched now, over the whole test set.
    if not (Path(run) / EVALUATIONS_FOLDER).is_dir():
        return []
    try:
        stored = StoredEvaluations(Path(run))
        found = stored.on_test()
    except UserError:
        return []
    label = ", ".join(text_names(stored.model.settings)["test"])
    return [TestResult(label, found.score_name, found.score, found.interval, len(found.references), found.signature)]


def _best_valid_score(run: str | Path) -> float | None:
    """Return the validation score of the run's last phase, for which its actor was chosen."""
    scores = [record["best_score"] for record in read_metrics(Path(run)) if record["kind"] == "valid"]
    return scores[-1] if scores else None


def _halve(model: Model, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in float16, after comparing what they predict with what the full ones do."""
    try:
        batches = model.task.evaluation_set("valid").batches
    except UserError as error:
        raise UserError(f"half: it compares predictions on the validation text: {error}") from None
    # Clones: `weights` are the actor's own tensors, which loading the halves overwrites.
    full = {name: weight.clone() for name, weight in weights.items()}
    # An actor of one's own may keep whole numbers, which float16 has exactly only up to 2,048.
    halved = {name: weight.half() if weight.is_floating_point() else weight for name, weight in full.items()}
    before = _predict_sample(model, batches)
    load_weights(model.actor, halved, "half")
    after = _predict_sample(model, batches)
    load_weights(model.actor, full, "half")  # the actor may be an object that the caller goes on with
    num_different = sum(one != other for one, other in zip(before, after, strict=True))
    if num_different:
        raise UserError(
            f"half: {num_different:,} of {len(before):,} predictions of validation sentences would change; export "
            "without it"
        )
    return halved


def _predict_sample(model: Model, batches: Sequence[Batch]) -> list[str]:
    predictions: list[str] = []
    for batch in batches:
        with torch.no_grad():
            predictions += model.codec.texts(find_best(model.actor, batch.sources, batch.source_mask, GREEDY))
        if len(predictions) >= SAMPLE:
            break
    return predictions
