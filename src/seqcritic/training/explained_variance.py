"""The explained variance of the critic: how much of the variance of the realised return it foresees,
on samples for validation sentences.

    1 − Var(G_t − Q̂(ŷ_t)) / Var(G_t),   G_t = Σ_{τ≥t} r_τ

1 is perfect, 0 is no better than a constant. Joint training that starts with a critic that explains little follows
noise; the warning says so, and `phases.critic.explained_variance` lets the phase end on the figure.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.data.corruption import derive_seed
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.settings.tree import Settings

NUM_SENTENCES = 512
WARNED_BELOW = 0.3


@torch.no_grad()
def explained_variance(networks: Networks, batches: Sequence[Batch], settings: Settings, score: Score) -> float:
    """Return the fraction explained on samples for the first few hundred validation sentences, by a seed of its own."""
    method = CriticTraining(settings.method, score, settings.score.shaping)
    # The word that derives the seed is an older name of this figure: another one would change published curves.
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "readiness"))
    # Anew at every call: evaluations differ by the networks, not by luck, and the run's own generator stays untouched.
    total, num_sentences = 0.0, 0
    for batch in batches:
        own = batch.to(networks.actor.device)
        measured = method(networks, own, generator, progress=0.0).measurements["explained_variance"]
        total += measured.item() * len(batch)  # batches differ in size
        num_sentences += len(batch)
        if num_sentences >= NUM_SENTENCES:
            break
    return total / num_sentences


def warning(explained: float) -> str:
    """Return what to say when joint training starts with this critic; nothing where it explains enough."""
    if explained >= WARNED_BELOW:
        return ""
    return (
        f"warning: the critic explains only {100 * explained:.0f} % of the variance of held-out returns; joint "
        "training may hurt before it helps: give phases.critic.updates more, or set phases.critic.explained_variance"
    )
