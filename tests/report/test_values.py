"""The values of a prediction as plain data: sums, continuations, JSON. Also the paper's example, for its siblings."""

import json
import math
from dataclasses import replace

import pytest

from seqcritic.report.values import END, Candidate, Step, ValueTable, find_continuations, show_token

SOURCE = ("über", "eine", "davon", "will", "ich", "hier", "erzählen", ".", END)
REFERENCE = ("and", "there", "&apos;s", "one", "i", "want", "to", "talk", "about", END)
PAPER = (
    ("one", "and 6.623 there 6.200 but 5.967"),
    ("of", "that 6.197 one 5.668 &apos;s 5.467"),
    ("them", "that 5.408 one 5.118 i 5.002"),
    ("i", "that 4.796 i 4.629 , 4.139"),
    ("want", "want 5.008 i 4.160 &apos;t 3.361"),
    ("to", "to 4.729 want 3.497 going 3.396"),
    ("tell", "talk 3.717 you 2.407 to 2.133"),
    ("you", "about 1.209 that 0.989 talk 0.924"),
    ("about", "about 0.706 . 0.660 right 0.653"),
    ("here", ". 0.498 ? 0.291 -- 0.285"),
    (".", ". 0.195 there 0.175 know 0.087"),
    (END, f". 0.168 {END} -0.093 ? -0.173"),
)


def spread_attention(place: float, size: int) -> tuple[float, ...]:
    """Return weights that sum to 1 and are largest at a place."""
    weights = [math.exp(-abs(index - place)) for index in range(size)]
    return tuple(weight / sum(weights) for weight in weights)


def read_candidates(line: str) -> tuple[Candidate, ...]:
    words = line.split(" ")
    return tuple(
        Candidate(token, float(value), 0.5 / 2**rank)
        for rank, (token, value) in enumerate(zip(words[::2], words[1::2], strict=True))
    )


def paper_table() -> ValueTable:
    """Return the example of the paper's appendix; what it does not print (rewards, attention) is made up."""
    steps = []
    for index, (token, line) in enumerate(PAPER):
        best = read_candidates(line)
        known = {candidate.token: candidate for candidate in best}
        chosen = known.get(token, Candidate(token, best[-1].value - 1, 0.125))
        likeliest = (Candidate(token, chosen.value, 0.75), Candidate("other", -1.5, 0.125))
        steps.append(
            Step(
                token=token,
                probability=0.75,
                value=chosen.value,
                reward=0.5 if token in REFERENCE[:-1] else -0.25 if token else 0.0,
                best=best,
                likeliest=likeliest,
                source_attention=spread_attention(0.7 * index, len(SOURCE)),
                reference_attention=spread_attention(0.8 * index, len(REFERENCE)),
            )
        )
    return ValueTable(
        source=SOURCE,
        reference=REFERENCE,
        steps=tuple(steps),
        prediction="one of them i want to tell you about here .",
        score_name="BLEU times reference length",
        title="iwslt14, actor-critic, seed 1",
        note="Rewards are made up.",
    )


def test_json_gives_the_table_back() -> None:
    table = paper_table()
    assert ValueTable.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False))) == table


def test_what_is_not_finite_survives_as_a_gap() -> None:
    table = paper_table()
    gap = replace(table, steps=(replace(table.steps[0], value=math.inf), *table.steps[1:]))
    again = ValueTable.from_dict(json.loads(json.dumps(gap.to_dict(), allow_nan=False)))
    assert math.isnan(again.steps[0].value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": []}, "values.steps: empty"),
        ({"source": ["a"]}, "values.source: must end with the end token"),
        ({"reference": ["a", END]}, r"values.steps\[0\].reference_attention: expected 2 numbers"),
        ({"title": 3}, "values.title: expected a string, found int"),
        ({"note": None}, "values.note: expected a string, found null"),
    ],
)
def test_a_faulty_file_is_refused_by_field(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ValueTable.from_dict(paper_table().to_dict() | change)


def test_rewards_add_up() -> None:
    table = paper_table()
    rewards = [step.reward for step in table.steps]
    assert table.score == sum(rewards) == 1.0
    assert table.collected[0] == rewards[0]
    assert table.collected[-1] == table.remaining[0] == table.score
    for index in range(1, len(rewards)):
        assert table.collected[index - 1] + table.remaining[index] == table.score


def test_tokens_can_be_seen() -> None:
    assert [show_token(token) for token in (END, " ", "a b", "\t", "the")] == ["∅", "␣", "a␣b", "⇥", "the"]


@pytest.mark.parametrize(
    ("reference", "prediction", "expected"),
    [
        ("abc", "abc", "abc∅"),  # right so far: the reference goes on
        ("abc", "axc", "abc∅"),  # one wrong: its place is passed
        ("abcd", "acd", "abd∅"),  # one left out: the token after it shows that
        ("abc", "aabc", "abbc∅"),  # one too many
        ("a", "axy", "a∅∅∅"),  # beyond the end
        ("", "a", "∅∅"),
    ],
)
def test_continuations(reference: str, prediction: str, expected: str) -> None:
    found = find_continuations((*reference, END), (*prediction, END))
    assert "".join(show_token(token) for token in found) == expected
