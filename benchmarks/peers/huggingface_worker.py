"""The side of transformers, Seq2SeqTrainer and generate as they come, and CTranslate2. Runs in their environment."""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import ctranslate2
import torch
from ctranslate2.converters.transformers import MarianMTLoader
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

from marian import BATCH, END, NUM_PAIRS, SIZES, make_model, make_pairs
from side_by_side.layers import count
from side_by_side.serve import serve


class Clock(TrainerCallback):
    """Adds up what the steps take; making batches, and what stands before the first step, is not counted."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def on_step_begin(self, *arguments: Any, **named: Any) -> None:
        """Start."""
        self._started = time.process_time(), time.perf_counter()

    def on_step_end(self, *arguments: Any, **named: Any) -> None:
        """Stop."""
        self.cpu += time.process_time() - self._started[0]
        self.wall += time.perf_counter() - self._started[1]


class Counting(Seq2SeqTrainer):
    """The trainer, with the tokens that it learnt from counted."""

    tokens = 0

    def training_step(self, model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        """Count and go on."""
        self.tokens += int((inputs["labels"] != -100).sum())
        return super().training_step(model, inputs, *rest, **named)


class Training:
    """Likelihood updates by the trainer, `sampling` being its order of examples."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.size, self.sampling = request["size"], request["sampling"]
        self.model = make_model(self.size)
        self.padding = SIZES[self.size].padding
        self.examples = [
            {"input_ids": [*source, END], "labels": [*target, END], "length": len(target)}
            for source, target in make_pairs(self.size, NUM_PAIRS)
        ]
        self.folder = tempfile.TemporaryDirectory()
        self.calls = 0

    def describe(self) -> dict[str, Any]:
        """Return what the model is made of."""
        return count(self.model)

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates on examples in a new order."""
        self.calls += 1
        clock = Clock()
        trainer = Counting(
            model=self.model,
            args=Seq2SeqTrainingArguments(
                output_dir=self.folder.name,
                per_device_train_batch_size=BATCH,
                max_steps=steps,
                train_sampling_strategy=self.sampling,
                learning_rate=1e-3,
                lr_scheduler_type="constant",
                seed=self.calls,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=self.examples,
            data_collator=self._collate,
            callbacks=[clock],
        )
        loss = trainer.train().training_loss
        return {"loss": loss, "step_cpu": clock.cpu, "step_wall": clock.wall, "tokens": trainer.tokens}

    def _collate(self, examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Pad as the library's collator does, which would need a tokenizer."""
        sources, labels = ([torch.tensor(each[name]) for each in examples] for name in ("input_ids", "labels"))
        ids = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=self.padding)
        labels = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=-100)
        return {"input_ids": ids, "attention_mask": (ids != self.padding).long(), "labels": labels}


class Generation:
    """`generate` for one batch of sources."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.model = make_model(request["size"], ends=False).eval()
        pairs = make_pairs(request["size"], BATCH, request["length"])
        self.sources = torch.tensor([[*source, END] for source, _ in pairs])
        self.options = dict(request["options"], max_new_tokens=request["length"])

    def describe(self) -> dict[str, Any]:
        """Return what the model is made of."""
        return count(self.model)

    def run(self, steps: int) -> dict[str, Any]:
        """Generate, and return what was written."""
        mask = torch.ones_like(self.sources)
        for _ in range(steps):
            found = self.model.generate(input_ids=self.sources, attention_mask=mask, **self.options)
        return {"tokens": found[:, 1:].tolist()}


class Translation:
    """CTranslate2 in single precision for one batch of sources."""

    def __init__(self, request: dict[str, Any]) -> None:
        model = make_model(request["size"], ends=False)
        loader = MarianMTLoader()
        spec = loader.get_model_spec(model)
        words = [str(number) for number in range(SIZES[request["size"]].padding)]
        loader.set_vocabulary(spec, words)
        spec.config.eos_token = spec.config.decoder_start_token = words[END]
        spec.config.unk_token = words[1]
        spec.validate()
        self.folder = tempfile.TemporaryDirectory()
        spec.save(self.folder.name)
        self.translator = ctranslate2.Translator(
            self.folder.name, device="cpu", compute_type="float32", inter_threads=1, intra_threads=int(sys.argv[1])
        )
        pairs = make_pairs(request["size"], BATCH, request["length"])
        self.sources = [[words[token] for token in [*source, END]] for source, _ in pairs]
        self.options = dict(request["options"], max_decoding_length=request["length"])

    def describe(self) -> dict[str, Any]:
        """Return nothing: it is the model of the others."""
        return {}

    def run(self, steps: int) -> dict[str, Any]:
        """Translate, and return what was written."""
        for _ in range(steps):
            found = self.translator.translate_batch(self.sources, **self.options)
        return {"tokens": [[int(word) for word in result.hypotheses[0]] for result in found]}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    serve({"likelihood": Training, "generate": Generation, "ctranslate2": Translation})
