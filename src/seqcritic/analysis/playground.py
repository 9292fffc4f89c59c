"""A recurrent run as one page that computes in the browser (report/playground): its weights, and all it needs to know.

What the page cannot compute as Python does is refused here, in one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from seqcritic.analysis.inspect import load_critic
from seqcritic.contracts.actor import Actor, PageNetwork
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.critic import Critic
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.tokens import TextVocabulary
from seqcritic.data.vocabulary import OTHER_CHARACTER, SPELLING_ALPHABET
from seqcritic.errors import UserError
from seqcritic.report.playground import Playground, render_playground
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.data import DataSettings, SpellingSettings, TranslationSettings
from seqcritic.training.checkpoint import read_description
from seqcritic.training.model import Model, find_weights, open_model

MOST_WEIGHTS = 12_000_000  # a page of 64 MB, about what a browser still opens without complaint
NUM_EXAMPLES = 4
GRU = "gru"


def playground(
    run: str | Path | Model,
    out: str | Path,
    *,
    examples: Sequence[tuple[str, str]] = (),
    half: bool = False,
) -> Path:
    """Write a page that runs a recurrent run's actor and critic in the browser, and return its path.

    `examples`: pairs of source and reference that the page offers; validation pairs of the run where none are given. A
    run without a critic shows its actor alone. `half`: 16 bits a weight, half the page; the rounded model is shown.
    """
    path = Path(out)
    page = render_playground(describe_playground(run, examples, half))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"out: cannot write {path}: {error.strerror or error}") from None
    return path


def describe_playground(
    run: str | Path | Model, examples: Sequence[tuple[str, str]] = (), half: bool = False
) -> Playground:
    """Return all that the page needs to know of a run, or say why a page cannot run it."""
    if not isinstance(run, Model):
        _require_recurrent(run)
    # Its weights are written down, not computed with.
    model = open_model(run, "cpu")
    settings, data = model.settings, model.settings.data
    actor, place = model.actor, model.place
    critic = load_critic(model) if "critic" in model.description["digests"] else None
    # The one score whose rewards the page can compute; with others it has values alone.
    score = model.score if settings.score.name == "edit-distance" else None
    assert score is None or isinstance(score, EditDistanceScore), "it is registered by this name"
    if score is None and critic is not None and critic.residual_on != "none":
        raise UserError(
            f"{place}: critic.residual_on={critic.residual_on} adds what {settings.score.name} says of each "
            "token, which a page can compute for edit-distance alone; show one prediction with inspect --out instead"
        )
    codec = describe_codec(model.codec, place)
    store = WeightStore("float16" if half else "float32")
    description = {
        "precision": store.precision,
        "actor": describe_network(_for_page(actor, place), store),
        "critic": None if critic is None else describe_critic(_for_page(critic, place), critic, store),
        "codec": codec,
        "score": None if score is None else describe_score(score, settings.score.shaping),
        "end": actor.special.end[0],
        "limits": {"factor": actor.limits.factor, "extra": actor.limits.extra},
        "longest": _longest(data),
        "noise": data.noise if isinstance(data, SpellingSettings) else None,
        "examples": [list(pair) for pair in examples or _find_examples(model)],
    }
    # Only now, when each tensor has been counted once: weights that are shared are stored once.
    if store.size > MOST_WEIGHTS:
        raise UserError(
            f"{place}: {store.size:,} weights, of which a page can hold {MOST_WEIGHTS:,}; show one prediction "
            "with inspect --out instead, or train with smaller networks and vocabularies"
        )
    notes = {
        "This model has no critic: the page shows its actor alone.": critic is None,
        "Weights are rounded to 16 bits: the page shows the rounded model.": half,
        "The run is not finished; its critic may hardly be trained.": not model.description["progress"]["finished"],
    }
    is_spelled = all(side["kind"] in ("spelling", "characters") for side in codec.values())
    networks = "the actor" if critic is None else "actor and critic"
    return Playground(
        title=f"{settings.name}, {settings.method.label}, seed {settings.seed}",
        unit="character" if is_spelled else "token",
        has_critic=critic is not None,
        is_spelled=is_spelled,
        facts=dict(settings.actor.facts())
        | {"score": settings.score.name, "weights": f"{store.size:,} of {networks}, {store.precision}"},
        notes=tuple(note for note, holds in notes.items() if holds),
        description=description,
        weights=store.bytes(),
    )


def _longest(data: DataSettings) -> int | None:
    """Return how many tokens the texts of training had at most; None: it is not known."""
    if isinstance(data, SpellingSettings):
        return data.length
    return data.maximum_length if isinstance(data, TranslationSettings) else None


def _for_page(part: Actor | Critic, place: Path) -> PageNetwork:
    """Return a network as a page takes it, or say that no page can."""
    network = part.for_page()
    if network is None:
        raise _refuse(place, f"here is {type(part).__name__}")
    return network


class WeightStore:
    """Tensors one after the other, each once, in one precision."""

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.size = 0
        self._tensors: list[Tensor] = []
        self._places: dict[int, tuple[int, list[int]]] = {}

    def place(self, tensor: Tensor) -> tuple[int, list[int]]:
        """Return where a tensor begins and its shape; it is added unless it is there."""
        key = tensor.data_ptr()
        if key not in self._places:
            self._places[key] = (self.size, list(tensor.shape))
            self._tensors.append(tensor)  # kept, so that no other can have its address
            self.size += tensor.numel()
        return self._places[key]

    def bytes(self) -> bytes:
        """Return all numbers in a row, the lowest byte of each first."""
        kind = {"float32": "<f4", "float16": "<f2"}[self.precision]
        return b"".join(tensor.detach().numpy().astype(np.float32).astype(kind).tobytes() for tensor in self._tensors)


def describe_network(network: PageNetwork, store: WeightStore) -> dict[str, Any]:
    """Return what network.js needs to know of a network, its tensors stored."""
    return network.facts | {"tensors": {name: store.place(tensor) for name, tensor in network.tensors.items()}}


def describe_critic(network: PageNetwork, critic: Critic, store: WeightStore) -> dict[str, Any]:
    """Return what network.js and values.js need to know of a critic."""
    return describe_network(network, store) | {"residualOn": critic.residual_on, "columns": critic.num_columns}


def describe_codec(codec: Codec, place: Path) -> dict[str, Any]:
    """Return what text.js needs to know of a codec: of its two sides."""
    if isinstance(codec, SpellingCodec):
        side: dict[str, Any] = {"kind": "spelling", "alphabet": SPELLING_ALPHABET, "other": OTHER_CHARACTER}
        return {"source": side, "target": side}
    if not isinstance(codec, TextCodec):
        raise _refuse(place, f"its tokens are those of {type(codec).__name__}")
    return {"source": _describe_side(codec.source, place), "target": _describe_side(codec.target, place)}


def _describe_side(side: TextVocabulary, place: Path) -> dict[str, Any]:
    """Return the words of a vocabulary, or the pieces and merges of byte-pair encoding, in the order of their ids."""
    stored = side.to_dict()
    if side.kind in ("words", "whitespace", "characters"):
        return stored
    if side.kind != "subwords":
        raise _refuse(place, f"its tokens are those of a {side.kind}; a page knows subwords, words and characters")
    model = stored["tokenizer"]["model"]
    # Older versions of the tokenizers library write a merge as one text, newer ones as a pair.
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    # By id, so that the position says it: a page needs no numbers.
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return {"kind": side.kind, "lowercase": side.lowercase, "pieces": pieces, "merges": merges}


def describe_score(score: EditDistanceScore, shaping: bool) -> dict[str, Any]:
    """Return what values.js needs to know of the score."""
    return {"normalise": score.normalise, "shaping": shaping, "unknown": score.unknown}


def _require_recurrent(run: str | Path) -> None:
    """Refuse an actor of another kind before its gigabytes are read."""
    kind = read_description(find_weights(run))["settings"]["actor"].get("kind", GRU)
    if kind != GRU:
        raise _refuse(run, f"its actor is of kind {kind}")


def _refuse(place: str | Path, why: str) -> UserError:
    return UserError(
        f"{place}: a page can run recurrent networks (kind {GRU}) alone, and {why}; show one prediction of it with "
        f"inspect {place} --source TEXT --reference TEXT --out page.html"
    )


def _find_examples(model: Model) -> list[tuple[str, str]]:
    """Return validation pairs of the run, or none where its data is not at hand."""
    try:
        found = model.task.first_examples(NUM_EXAMPLES)
    # A page without examples still runs; the data may be gone where the run was copied to.
    except (UserError, OSError):
        return []
    return [(source, references[0]) for source, references in found]
