"""What is gathered of a prediction is what actor, critic and score say of it: checked on small random networks."""

from __future__ import annotations

import pytest
import torch

from seqcritic.analysis.inspect_example import Detokeniser, RewardScore, inspect_example
from seqcritic.contracts.batch import Batch, pad
from seqcritic.contracts.score import Scorable
from seqcritic.data.vocabulary import END, Vocabulary
from seqcritic.decoding.sampling import greedy
from seqcritic.errors import NonFiniteError
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.report.values import END as END_TOKEN
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore

WORDS = ("red", "green", "blue", "dark", "light", "sky", "sea")
SOURCES = Vocabulary("abcdefgh")
TARGETS = Vocabulary(WORDS)
DETOKENISER = Detokeniser(SOURCES.decode, TARGETS.decode, lambda ids: " ".join(TARGETS.decode(ids)))
DISTANCE = RewardScore(EditDistanceScore(normalise=False), "distance", shaping=True)
EXAMPLE = Batch(*pad([SOURCES.encode("bad")]), *pad([TARGETS.encode(["dark", "blue", "sea", "sky"])]))
PREDICTION = TARGETS.encode(["dark", "red", "sea"])


def make_networks(reads_actor_states: bool = True) -> tuple[RecurrentActor, RecurrentCritic]:
    sizes = {"embedding": 6, "hidden": 7, "attention": 5, "initial_range": 1.0}
    actor = RecurrentActor(GruActorSettings(**sizes), len(SOURCES), len(TARGETS), torch.Generator().manual_seed(0))
    settings = GruCriticSettings(**sizes, reads_actor_states=reads_actor_states)
    return actor, RecurrentCritic(settings, len(TARGETS), 7, torch.Generator().manual_seed(1))


def text_of(number: int) -> str:
    return END_TOKEN if number == END else WORDS[number - 1]


@pytest.mark.parametrize("reads_actor_states", [False, True])
def test_values_and_probabilities_are_the_networks_own(reads_actor_states):
    actor, critic = make_networks(reads_actor_states)
    table = inspect_example(actor, critic, EXAMPLE, DETOKENISER, DISTANCE, PREDICTION, top=3)
    tokens = torch.tensor([[*PREDICTION, END]])
    with torch.no_grad():
        logits, states = actor.score(actor.encode(EXAMPLE.sources, EXAMPLE.source_mask), tokens)
        values = critic.values(critic.encode(EXAMPLE.references, EXAMPLE.reference_mask), tokens, states)[0]
    probabilities = torch.softmax(logits[0], dim=1)
    assert [step.token for step in table.steps] == ["dark", "red", "sea", END_TOKEN]
    for index, (step, number) in enumerate(zip(table.steps, tokens[0].tolist(), strict=True)):
        assert step.value == values[index, number].item()
        assert step.probability == probabilities[index, number].item()
        by_value = sorted(range(len(TARGETS)), key=lambda other: -values[index, other].item())[:3]
        by_probability = sorted(range(len(TARGETS)), key=lambda other: -probabilities[index, other].item())[:3]
        assert [one.token for one in step.best] == [text_of(other) for other in by_value]
        assert [one.token for one in step.likeliest] == [text_of(other) for other in by_probability]
        assert [one.value for one in step.best] == [values[index, other].item() for other in by_value]
        assert [one.probability for one in step.best] == [probabilities[index, other].item() for other in by_value]


def test_texts_carry_their_end_tokens():
    table = inspect_example(*make_networks(), EXAMPLE, DETOKENISER, DISTANCE, PREDICTION, title="t", note="n")
    assert table.source == ("b", "a", "d", END_TOKEN)
    assert table.reference == ("dark", "blue", "sea", "sky", END_TOKEN)
    assert table.prediction == "dark red sea"
    assert (table.score_name, table.title, table.note) == ("distance", "t", "n")


@pytest.mark.parametrize("reads_actor_states", [False, True])
def test_attention_is_the_one_the_contexts_were_computed_with(reads_actor_states):
    actor, critic = make_networks(reads_actor_states)
    table = inspect_example(actor, critic, EXAMPLE, DETOKENISER, DISTANCE, PREDICTION)
    with torch.no_grad():
        memory = actor.encode(EXAMPLE.sources, EXAMPLE.source_mask)
        critic_memory = critic.encode(EXAMPLE.references, EXAMPLE.reference_mask)
        state, critic_state = actor.start(memory), critic.decoder.start(critic_memory)
        for step, number in zip(table.steps, [*PREDICTION, END], strict=True):
            looked = torch.tensor(step.source_attention) @ memory.annotations[0]
            critic_looked = torch.tensor(step.reference_attention) @ critic_memory.annotations[0]
            assert sum(step.source_attention) == pytest.approx(1.0, abs=1e-6)
            assert sum(step.reference_attention) == pytest.approx(1.0, abs=1e-6)
            assert torch.allclose(looked, state.context[0], atol=1e-6)
            assert torch.allclose(critic_looked, critic_state.context[0], atol=1e-6)
            taken = torch.tensor([number])
            state = actor.step(memory, state, taken)
            extra = state.hidden if reads_actor_states else None
            critic_state = critic.decoder.step(critic_memory, critic_state, taken, extra)


@pytest.mark.parametrize("shaping", [True, False])
@pytest.mark.parametrize("score", [EditDistanceScore(False), EditDistanceScore(True), BleuScore(unknown=None)])
def test_rewards_sum_to_the_score(score, shaping):
    table = inspect_example(*make_networks(), EXAMPLE, DETOKENISER, RewardScore(score, "any", shaping), PREDICTION)
    lengths = torch.tensor([3]), torch.tensor([4])
    expected = score.score(Scorable.of(torch.tensor([PREDICTION]), lengths[0], EXAMPLE.references, lengths[1]))
    assert table.score == pytest.approx(expected.item(), abs=1e-6)
    if not shaping:
        assert [step.reward for step in table.steps[:-1]] == [0.0, 0.0, 0.0]


def test_golden_rewards():
    """ "dark red sea" for "dark blue sea sky": right, wrong, right; the word left out costs what it never earned."""
    table = inspect_example(*make_networks(), EXAMPLE, DETOKENISER, DISTANCE, PREDICTION)
    assert [step.reward for step in table.steps] == [1.0, 0.0, 1.0, 0.0]
    assert table.expected == ("dark", "blue", "sea", "sky")


def test_the_greedy_prediction_is_the_default():
    actor, critic = make_networks()
    table = inspect_example(actor, critic, EXAMPLE, DETOKENISER, DISTANCE, top=2)
    tokens = greedy(actor, EXAMPLE.sources, EXAMPLE.source_mask)[0].tolist()
    length = tokens.index(END) + 1 if END in tokens else len(tokens)
    assert [step.token for step in table.steps] == [text_of(number) for number in tokens[:length]]
    assert all(step.likeliest[0].token == step.token for step in table.steps)


def test_a_prediction_that_never_ends_is_shown_as_far_as_it_goes():
    actor, critic = make_networks()
    with torch.no_grad():
        actor.decoder.output_layer.bias[END] = -1000.0
    table = inspect_example(actor, critic, EXAMPLE, DETOKENISER, DISTANCE)
    assert len(table.steps) == 2 * 4 + 10
    assert END_TOKEN not in [step.token for step in table.steps]


def test_more_candidates_than_tokens_gives_all_tokens():
    table = inspect_example(*make_networks(), EXAMPLE, DETOKENISER, DISTANCE, [], top=100)
    assert len(table.steps) == 1
    assert {one.token for one in table.steps[0].best} == {END_TOKEN, *WORDS}


def test_values_that_are_not_finite_are_refused():
    actor, critic = make_networks()
    with torch.no_grad():
        critic.decoder.output_layer.bias[2] = torch.nan
    with pytest.raises(NonFiniteError):
        inspect_example(actor, critic, EXAMPLE, DETOKENISER, DISTANCE)
