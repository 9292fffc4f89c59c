"""A mistyped name is answered with the nearest known one, whatever it names."""

from __future__ import annotations

import pytest

from support import Refusal


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["trian", "demo"], "train"),
        (["evalaute", "runs/demo"], "evaluate"),
        (["validate", "dmeo"], "demo"),
        (["validate", "demo", "method.name=actor-critc"], "actor-critic"),
        (["validate", "demo", "score.name=bleuu"], "bleu"),
        (["validate", "demo", "evaluation.also=[chrff]"], "chrf"),
        (["validate", "demo", "training.bach=3"], "training.batch"),
        (["validate", "demo", "compare.costs={actor-critik: 2}"], "actor-critic"),
        (["validate", "demo", "actor.kind=gruu"], "gru"),
        (["compare", "demo", "--methods", "likelihod"], "likelihood"),
        (["predict", "speling-paper"], "spelling-paper"),
        (["validate", "demo", "data.task=translatoin"], "translation"),
    ],
)
def test_a_mistyped_name_is_told_the_nearest(arguments: list[str], meant: str, refusal: Refusal):
    assert f"(did you mean '{meant}'?)" in refusal(*arguments)


def test_what_is_near_to_nothing_is_told_what_there_is(refusal: Refusal):
    line = refusal("xyzzy")
    assert "did you mean" not in line
    assert "no command 'xyzzy'; commands: init, train, compare, " in line
