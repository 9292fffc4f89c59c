"""The diagnosis of runs: how far each estimator of the gradient is from the truth, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from seqcritic.analysis.diagnosis_input import DiagnosisInput, load_diagnosis_input
from seqcritic.analysis.fitted_baseline import fit_baseline
from seqcritic.analysis.measure import measure
from seqcritic.analysis.moments import NUM_GROUPS
from seqcritic.contracts.networks import Networks
from seqcritic.data.corruption import derive_seed
from seqcritic.errors import UserError
from seqcritic.files import unseal
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.methods.token_values import measure_token_values
from seqcritic.progress import Bar, log, set_up_logging
from seqcritic.report.diagnosis import Diagnosis, DiagnosisRow, TokenValues, join_diagnoses
from seqcritic.settings.tree import DeviceName
from seqcritic.training.environment import environment
from seqcritic.training.tracking import loss_terms

FEWEST_DRAWS = 2 * NUM_GROUPS
DRAWS_FOR_MEANS = 64


def diagnose(
    places: Sequence[str | Path],
    num_examples: int = 128,
    most_draws: int = 2000,
    split: str = "valid",
    wanted_error: float = 0.1,
    device: DeviceName = "auto",
) -> Diagnosis:
    """Measure bias and variance of the estimators for every run, checkpoint or model folder.

    A place that is a .json file holds an earlier diagnosis, whose rows are taken over.
    """
    if most_draws < FEWEST_DRAWS:
        raise UserError(f"draws: at least {FEWEST_DRAWS} are needed to tell noise from bias, not {most_draws}")
    set_up_logging()
    # All are loaded before any is measured: the fault of the last would be told after hours.
    found: list[Diagnosis | DiagnosisInput] = [
        read_diagnosis(Path(place))
        if str(place).endswith(".json")
        else load_diagnosis_input(place, split, num_examples, device)
        for place in places
    ]
    parts = [
        part
        if isinstance(part, Diagnosis)
        else Diagnosis((diagnose_input(part, split, most_draws, wanted_error),), environment())
        for part in found
    ]
    return join_diagnoses(parts)


def diagnose_input(diagnosed: DiagnosisInput, split: str, most_draws: int, wanted_error: float) -> DiagnosisRow:
    """Measure one checkpoint of one run."""
    subject, settings, batches = diagnosed.subject, diagnosed.settings, diagnosed.batches
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "diagnosis"))
    means = sample_means(diagnosed)
    baseline = fit_baseline(subject, batches, generator)
    log.info(f"phase {diagnosed.label}: update 0 of {most_draws}")
    with Bar(diagnosed.label, most_draws, pace=True) as bar:

        def report_error(draws: int, error: float) -> None:
            known = f"true gradient known to {error:.1%}, wanted {wanted_error:.1%}"
            bar.update(draws, known, loss_terms(means), now=True)

        measured = measure(subject, baseline, batches, generator, most_draws, wanted_error, report_error)
    return DiagnosisRow(
        label=diagnosed.label,
        method=settings.method.label,
        updates=diagnosed.updates,
        split=split,
        examples=sum(len(batch) for batch in batches),
        draws=measured.draws,
        mean_return=means["sampled_return"],
        explained_variance=means["explained_variance"],
        gradient_norm=measured.gradient_norm,
        gradient_error=measured.gradient_error,
        wanted_error=wanted_error,
        truth=measured.truth,
        estimators=measured.estimators,
        token_values=evaluate_token_values(diagnosed),
    )


def evaluate_token_values(diagnosed: DiagnosisInput) -> TokenValues:
    """Return what the critic knows of the tokens of one step, from samples for this alone."""
    generator = torch.Generator().manual_seed(derive_seed(diagnosed.settings.seed, "token values"))
    subject = diagnosed.subject
    found = measure_token_values(subject.actor, subject.critic, subject.score, diagnosed.batches, generator)
    return TokenValues(**found._asdict())


def sample_means(diagnosed: DiagnosisInput) -> dict[str, float]:
    """Return the mean return and the share of its variance that the critic explains, from samples for this alone."""
    subject, settings = diagnosed.subject, diagnosed.settings
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "diagnosis", "means"))
    networks = Networks(subject.actor, critic=subject.critic, target_critic=subject.critic)
    evaluated = CriticTraining(settings.method, subject.score, subject.shaping)
    with torch.no_grad():
        outcomes = [
            (evaluated(networks, batch, generator, 0.0).measurements, len(batch))
            for _ in range(DRAWS_FOR_MEANS)
            for batch in diagnosed.batches
        ]
    total = sum(count for _, count in outcomes)
    return {
        name: sum(found[name].item() * count for found, count in outcomes) / total
        for name in ("sampled_return", "explained_variance")
    }


def read_diagnosis(path: Path) -> Diagnosis:
    """Read what an earlier diagnosis wrote."""
    try:
        return Diagnosis.from_dict(unseal(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is no diagnosis as seqcritic wrote it ({error}); put back a copy, or diagnose again"
        ) from None
