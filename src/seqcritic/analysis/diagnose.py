"""The diagnosis of runs, or of any actor and critic: how far each estimator of the gradient is from the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, overload

import torch
from torch import nn

from seqcritic.analysis.diagnosis_input import (
    AnyScore,
    DiagnosisInput,
    Examples,
    choose_score,
    compose_diagnosis_input,
    load_diagnosis_input,
)
from seqcritic.analysis.estimators import Subject, fit_baseline, sample_examples
from seqcritic.analysis.measure import measure
from seqcritic.analysis.moments import NUM_GROUPS
from seqcritic.analysis.sample_means import EXPLAINED, RETURN, sample_means
from seqcritic.analysis.state_values import StateValues, look_ahead, require_causal
from seqcritic.contracts.actor import Actor
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.critic import Critic
from seqcritic.data.corruption import derive_seed
from seqcritic.errors import UserError
from seqcritic.files import unseal
from seqcritic.methods.token_values import measure_token_values
from seqcritic.progress import Bar, log, set_up_logging
from seqcritic.report.diagnosis import Diagnosis, DiagnosisRow, TokenValues, join_diagnoses
from seqcritic.settings.tree import DeviceName
from seqcritic.training.environment import environment
from seqcritic.training.model import Model
from seqcritic.training.tracking import loss_terms

FEWEST_DRAWS = 2 * NUM_GROUPS  # the two rounds of groups that `measure` makes at least

Run: TypeAlias = str | Path | Model


@overload
def diagnose(
    subject: Run | Sequence[Run],
    *,
    num_examples: int = 128,
    most_draws: int = 2000,
    split: str = "valid",
    wanted_error: float = 0.1,
    device: DeviceName = "auto",
) -> Diagnosis: ...


@overload
def diagnose(
    subject: Actor,
    critic: Critic | StateValues,
    score: AnyScore,
    examples: Examples,
    *,
    codec: Codec | None = None,
    shaping: bool = True,
    gae_lambda: float = 0.95,
    label: str = "",
    seed: int = 1,
    num_examples: int = 128,
    most_draws: int = 2000,
    wanted_error: float = 0.1,
) -> Diagnosis: ...


def diagnose(
    subject: Actor | Run | Sequence[Run],
    critic: Critic | StateValues | None = None,
    score: AnyScore | None = None,
    examples: Examples | None = None,
    *,
    codec: Codec | None = None,
    shaping: bool = True,
    gae_lambda: float = 0.95,
    label: str = "",
    seed: int = 1,
    num_examples: int = 128,
    most_draws: int = 2000,
    split: str = "valid",
    wanted_error: float = 0.1,
    device: DeviceName = "auto",
) -> Diagnosis:
    """Measure bias and variance of the gradient estimators, and what the critic knows: of runs, or of actor and critic.

    `diagnose("runs/mine")`: a run, checkpoint or model folder, a loaded model, or several of them, a row each, on
    `num_examples` examples of a `split` of their data. A .json file holds an earlier diagnosis, whose rows are taken.

    `diagnose(actor, critic, score, examples)`: any actor, and a critic of tokens or a `StateValues` of prefixes. The
    examples are pairs of texts, for which the `codec` is needed, a set of a task, or batches, which are taken as they
    are. `shaping`: every token is rewarded with what it adds to the score, as `score.shaping` has it; without, the last
    with all of it. A value function, or a critic of states, is also measured by the advantages of `gae_lambda`.

    Draws go on until the true gradient is known to `wanted_error` of its length, `most_draws` at most.
    """
    of_parts = isinstance(subject, Actor)
    if most_draws < FEWEST_DRAWS:
        name = "most_draws" if of_parts else "draws"
        raise UserError(f"{name}: at least {FEWEST_DRAWS} are needed to tell noise from bias, not {most_draws}")
    set_up_logging()
    # All are loaded before any is measured: the fault of the last would be told after hours.
    found: list[Diagnosis | DiagnosisInput]
    if isinstance(subject, Actor):
        if not isinstance(critic, Critic | StateValues):
            raise UserError(f"critic: {type(critic).__name__} is neither a Critic nor a StateValues")
        if score is None or examples is None:
            raise UserError(
                "diagnose of an actor needs critic, score and examples: diagnose(actor, critic=…, score=…, examples=…)"
            )
        given = Subject(subject, critic, choose_score(score, codec), shaping, gae_lambda)
        found = [compose_diagnosis_input(given, examples, num_examples, codec, label, seed)]
    else:
        if critic is not None or score is not None or examples is not None:
            raise UserError("diagnose of runs takes critic, score and examples from the runs; give an Actor for others")
        # A text is a sequence too, of letters: what is one run is told apart first.
        runs = [subject] if isinstance(subject, str | Path | Model) else subject
        found = [
            read_diagnosis(Path(run))
            if not isinstance(run, Model) and str(run).endswith(".json")
            else load_diagnosis_input(run, split, num_examples, device)
            for run in runs
        ]
    parts = [
        part
        if isinstance(part, Diagnosis)
        else Diagnosis((diagnose_input(part, most_draws, wanted_error),), environment())
        for part in found
    ]
    return join_diagnoses(parts)


def diagnose_input(diagnosed: DiagnosisInput, most_draws: int, wanted_error: float) -> DiagnosisRow:
    """Measure one checkpoint of one run, or one actor with its critic; dropout is off meanwhile."""
    subject, batches = diagnosed.subject, diagnosed.batches
    # All that is measured is of one policy: the same in drawing and in scoring, and from draw to draw.
    with _evaluating(subject.actor, subject.critic):
        if subject.state_values is not None:
            # Before hours of draws whose figures would mean nothing.
            _require_causal(diagnosed, subject.state_values)
        # Streams of their own: one more figure does not change the draws of another.
        means = sample_means(subject, batches, diagnosed.settings, _generator(diagnosed, "diagnosis", "means"))
        # The baseline's samples come first and are not used again for estimates.
        generator = _generator(diagnosed, "diagnosis")
        baseline = fit_baseline(subject, batches, generator)
        log.info(f"phase {diagnosed.label}: update 0 of {most_draws}")
        with Bar(diagnosed.label, most_draws, pace=True) as bar:
            terms = loss_terms({name: figure.value for name, figure in means.items()})

            def report_error(draws: int, error: float) -> None:
                bar.update(draws, f"true gradient known to {error:.1%}, wanted {wanted_error:.1%}", terms, now=True)

            measured = measure(subject, baseline, batches, generator, most_draws, wanted_error, report_error)
        # With dropout still off, and a stream of its own.
        token_values = evaluate_token_values(diagnosed)
    return DiagnosisRow(
        label=diagnosed.label,
        method=diagnosed.method,
        updates=diagnosed.updates,
        split=diagnosed.split,
        examples=sum(len(batch) for batch in batches),
        draws=measured.draws,
        mean_return=means[RETURN].value,
        explained_variance=means[EXPLAINED].value,
        gradient_norm=measured.gradient_norm,
        gradient_error=measured.gradient_error,
        wanted_error=wanted_error,
        truth=measured.truth,
        estimators=measured.estimators,
        token_values=token_values,
        mean_return_error=means[RETURN].error,
        explained_variance_error=means[EXPLAINED].error,
    )


def evaluate_token_values(diagnosed: DiagnosisInput) -> TokenValues:
    """Return how the critic's values of the tokens of one step compare with true ones, on samples of their own."""
    subject, generator = diagnosed.subject, _generator(diagnosed, "token values")
    actor, score, states = subject.actor, subject.score, subject.state_values
    # V tells no tokens apart by itself: they are valued by the state that each leads to.
    values_of = subject.token_critic if states is None else look_ahead(states, score, actor.special, subject.shaping)
    found = measure_token_values(actor, values_of, score, diagnosed.batches, generator)
    return TokenValues(**found._asdict())


def _generator(diagnosed: DiagnosisInput, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(diagnosed.seed, *names))


@torch.no_grad()
def _require_causal(diagnosed: DiagnosisInput, state_values: StateValues) -> None:
    """Try a value function on one sample of the first examples."""
    subject, batch = diagnosed.subject, diagnosed.batches[0]
    memory = subject.actor.encode(batch.sources, batch.source_mask)
    drawn = sample_examples(subject, batch, memory, _generator(diagnosed, "causal")).sample
    require_causal(state_values, drawn.tokens, drawn.mask, batch, subject.actor.num_tokens)


@contextmanager
def _evaluating(*parts: object) -> Iterator[None]:
    """Switch dropout of networks off, and on again where it was."""
    # Module by module: a part that a user froze on purpose must not come back in training mode.
    training = [module for part in parts if isinstance(part, nn.Module) for module in part.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def read_diagnosis(path: Path) -> Diagnosis:
    """Read what an earlier diagnosis wrote."""
    try:
        return Diagnosis.from_dict(unseal(json.loads(path.read_text(encoding="utf-8"))))
    # JSON that cannot be read, a wrong digest and wrong fields are all ValueErrors.
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is no diagnosis as seqcritic wrote it ({error}); put back a copy, or diagnose again"
        ) from None
