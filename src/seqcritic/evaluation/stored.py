"""Evaluations of a run kept beside it, so that what has been searched once is not searched again.

Each file of RUN/evaluations holds the predictions of one search, or a tuned length reward ρ, under a key: the digest of
the actor's weights and the signature (text, search, versions). Under another key it is made anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from seqcritic.decoding.search import GREEDY, AnySearch, Search
from seqcritic.evaluation.evaluate import predict_batches, signature
from seqcritic.evaluation.run import RunEvaluation, evaluate_predictions, load_for_evaluation
from seqcritic.evaluation.tuning import tune_model
from seqcritic.files import seal, unseal, write_whole
from seqcritic.progress import Bar
from seqcritic.training.model import Model

EVALUATIONS_FOLDER = "evaluations"


class StoredEvaluations:
    """Evaluates the best actor of a run on its text or on what overrides name, and reads what it has evaluated
    before."""

    def __init__(self, run: Path | Model, label: str = "", overrides: Sequence[str] = ()) -> None:
        """`run`: its folder, or its loaded model. `label` stands before the titles of bars."""
        self.folder = (run.place if isinstance(run, Model) else run) / EVALUATIONS_FOLDER
        self.label = f"{label}: " if label else ""
        self.model, self.task = load_for_evaluation(run, overrides)
        # Evaluating on other text leaves what is stored of the run's own.
        self.suffix = f"-{sha256(repr(sorted(overrides)).encode()).hexdigest()[:8]}" if overrides else ""

    def on_test(self, search: AnySearch = GREEDY) -> RunEvaluation:
        """Return the evaluation of a search on the test set."""
        search = self.model.resolve(search)
        test = self.task.evaluation_set("test")

        def predict() -> list[str]:
            title = f"{self.label}{search.describe()} on test"
            with Bar(title, len(test), "sentences") as bar, self.model.predicting(search):
                return predict_batches(self.model.actor, self.task, bar.over(test.batches, len), search)

        # Without ρ, which is in the key: of each width the newest evaluation is kept.
        name = f"test-{search.describe().replace(' ', '-')}"
        predictions = self._remember(name, self._key("test", len(test.references), search), predict)
        return evaluate_predictions(self.model, self.task, "test", test, search, predictions)

    def tuned(self, width: int) -> Search:
        """Return the beam search of a width with the length reward that is best on the validation set."""
        # Of a search without ρ, which is what is sought.
        key = self._key("valid", len(self.task.evaluation_set("valid").references), Search(width))

        def tune() -> dict[str, Any]:
            best, scores = tune_model(self.model, self.task, width, label=self.label)
            return {"rho": best, "scores": {f"{rho:g}": score for rho, score in scores.items()}}

        return Search(width, self._remember(f"valid-beam-{width}-rho", key, tune)["rho"])

    def _key(self, split: str, num_sentences: int, search: AnySearch) -> str:
        precision = self.model.settings.precision
        text = signature(self.task, self.model.score, split, num_sentences, search, precision=precision)
        return f"actor:{self.model.description['digests']['actor']}|{text}"

    def _remember(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        path = self.folder / f"{name}{self.suffix}.json"
        # A damaged file counts as none.
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = unseal(json.loads(path.read_text(encoding="utf-8")), required=True)
            if content["key"] == key:
                return content["result"]
        result = make()
        # A run may be another person's, which can be read and not written to.
        with suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            write_whole(path, json.dumps(seal({"key": key, "result": result}), indent=1))
        return result
