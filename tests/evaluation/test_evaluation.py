"""The corpus score by its name in a recipe, and its signature."""

from __future__ import annotations

import re
import sys

import pytest

from seqcritic.contracts.batch import EvaluationSet
from seqcritic.data.task import build_task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score, name_references, signature, surrogate, without_surrogate
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe
from support import write_text


@pytest.fixture
def signature_of(tmp_path):
    """A function that returns the signature of a score on a small text, with overrides of the demo recipe."""
    text = write_text(tmp_path / "text.txt", num_lines=50)
    return lambda *overrides: _signature_of([f"data.test={text}", *overrides])


def _signature_of(overrides: list[str]) -> str:
    settings = load_recipe("demo", overrides)
    score = build_score(settings)
    return signature(build_task(settings.data), score, "test", 100, trained=surrogate(score))


def test_the_signature_names_what_changes_the_figure(signature_of, tmp_path):
    plain = signature_of()
    other = write_text(tmp_path / "other.txt", num_lines=50, seed=1)
    assert signature_of(f"data.test={other}") != plain
    assert "score:CER|split:test|sentences:100|" in plain
    assert "trained:" not in plain, "edit distances of characters are what the character error rate counts"
    ratio = signature_of("score.normalise=true")
    assert "|trained:edit-distance/length:characters|" in ratio
    assert without_surrogate(ratio) == plain
    for override in ("data.noise=0.25", "data.minimum_length=3", "data.evaluation_seed=9", "score.capped=true"):
        assert signature_of(override) != plain


@pytest.mark.parametrize(
    ("score", "name"), [("bleu", "BLEU"), ("rouge-l", "ROUGE-L"), ("support:word_share", "support:word_share")]
)
def test_scores_are_found_by_name_and_larger_is_better(score, name):
    metric = build_score(load_recipe("demo", [f"score.name={score}"]))
    assert metric.name == name
    assert metric.higher_is_better
    good = metric.statistics(["a cat sat on a mat"], ["a cat sat on a mat"]).sum(axis=0)
    bad = metric.statistics(["no dog"], ["a cat sat on a mat"]).sum(axis=0)
    assert float(metric.of_totals(good)) > float(metric.of_totals(bad))


def test_a_model_without_case_is_evaluated_without_case():
    given = ["data.target_tokens.lowercase=true", "score.name=bleu"]
    assert "case:lc" in build_score(load_recipe("tatoeba-de-en", given)).signature()
    assert "case:mixed" in build_score(load_recipe("iwslt14-conv")).signature()


@pytest.mark.parametrize("score", ["edit-distance", "rouge-l", "support:word_share"])
def test_case_counts_in_no_score_of_a_model_without_it(score: str):
    without, cased = (
        build_score(
            load_recipe(
                "tatoeba-de-en",
                [f"score.name={score}", "critic.residual_on=none", f"data.target_tokens.lowercase={given}"],
            )
        )
        for given in ("true", "false")
    )
    same, best = (without.statistics([text], ["The Cat"]).tolist() for text in ("the cat", "The Cat"))
    assert same == best
    if score != "rouge-l":  # which leaves case out of raw text by itself
        assert "case:lc" in without.signature()
        assert cased.statistics(["the cat"], ["The Cat"]).tolist() != best


def test_rouge_of_text_with_nothing_to_count_is_refused():
    rouge = build_score(load_recipe("tatoeba-de-en", ["score.name=rouge-l"]))
    with pytest.raises(UserError, match=r"^score\.name: ROUGE-L counts the letters a to z and digits only"):
        rouge.statistics(["кот"], ["кот"])
    assert rouge.statistics(["кот", "cat"], ["кот", "Cat"])[:, 0].tolist() == [0, 100]


def test_text_that_comes_tokenised_is_not_tokenised_again():
    escaped, other = "it &apos;s &quot; it &quot;", "he &apos;s &quot; no &quot;"
    tokenised, raw = (build_score(load_recipe(name)) for name in ("iwslt14-conv", "tatoeba-de-en"))
    assert "tok:none" in tokenised.signature()
    assert "tok:13a" in raw.signature()
    correct, possible = tokenised.statistics([escaped], [other])[0, [0, 4]]
    assert (correct, possible) == (3, 5)
    assert raw.statistics([escaped], [other])[0, 4] > 5, "what was one token has become several"


def test_rouge_of_text_that_comes_tokenised_counts_its_tokens():
    escaped, other = "it &apos;s &quot; it &quot;", "he &apos;s &quot; no &quot;"
    tokenised, raw = (
        build_score(load_recipe(name, ["score.name=rouge-l"])) for name in ("iwslt14-conv", "tatoeba-de-en")
    )
    assert tokenised.statistics([escaped], [other])[0, 0] == pytest.approx(100 * 3 / 5)
    assert raw.statistics([escaped], [other])[0, 0] == pytest.approx(100 * 4 / 6), "letters only: apos s quot quot"
    assert "tok:none" in tokenised.signature()
    lowercase = build_score(load_recipe("iwslt14-conv", ["score.name=rouge-l", "data.target_tokens.lowercase=true"]))
    assert tokenised.statistics(["a ."], ["A ."])[0, 0] == pytest.approx(50)
    assert lowercase.statistics(["a ."], ["A ."])[0, 0] == pytest.approx(100)


@pytest.mark.parametrize(
    ("kind", "name", "rules", "trained"),
    [
        ("words", "WER", "tok:words.1", ""),
        ("whitespace", "WER", "tok:whitespace", ""),
        ("subwords", "CER", None, "trained:edit-distance:subwords"),
    ],
)
def test_edit_distances_are_reported_in_the_unit_they_are_trained_in(
    kind: str, name: str, rules: str | None, trained: str
):
    given = ["score.name=edit-distance", f"data.target_tokens.kind={kind}"]
    settings = load_recipe("tatoeba-de-en", given)
    metric = build_score(settings)
    assert (metric.name, surrogate(metric)) == (name, trained)
    assert rules is None or rules in metric.signature()
    errors, length = metric.statistics(["The cat sat."], ["The kitten sat."])[0].tolist()
    assert (errors, length) == {"words": (1, 4), "whitespace": (1, 3), "subwords": (5, 15)}[kind]


def test_a_surrogate_is_named():
    words, cut = (build_score(load_recipe(name)) for name in ("tatoeba-de-en", "iwslt14-conv"))
    assert surrogate(words) == "trained:sentence-bleu+1:words"
    assert surrogate(cut) == "trained:sentence-bleu+1:whitespace"
    rouge = build_score(load_recipe("tatoeba-de-en", ["score.name=rouge-l"]))
    assert surrogate(rouge) == "trained:length*rouge-l:words"
    assert surrogate(build_score(load_recipe("demo", ["score.capped=true"]))) == "trained:edit-distance:characters"
    assert surrogate(build_score(load_recipe("demo", ["score.name=support:word_share"]))) == ""


def test_two_versions_of_a_function_have_two_signatures(tmp_path, monkeypatch):
    """The name and the module's name are the same; what the functions return is not."""

    def signature_of_version(folder: str, code: str) -> list[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "versioned_scores.py").write_text(code, encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / folder))
            patch.delitem(sys.modules, "versioned_scores", raising=False)
            try:
                return build_score(load_recipe("demo", ["score.name=versioned_scores:share"])).signature()
            finally:
                del sys.modules["versioned_scores"]

    code = "WEIGHT = {}\n\n\ndef share(prediction, reference):\n    return WEIGHT * (prediction == reference)\n"
    one, other, again = (signature_of_version(f"{n}", code.format(w)) for n, w in enumerate((1, 50, 1)))
    assert one == again
    assert one != other, "what the module around the function says is part of the score"
    assert re.fullmatch("code:[0-9a-f]{12}", one[-1])


def test_a_function_without_source_says_so():
    assert build_score(load_recipe("demo", ["score.name=math:dist"])).signature()[-1] == "code:unknown"


def test_a_signature_names_the_number_of_references():
    bleu, rate = BleuScore().signature(), EditDistanceScore().signature()
    assert name_references(bleu, "1") == bleu
    assert name_references(rate, "1") == rate
    assert [part for part in name_references(bleu, "2") if part.startswith("nrefs")] == ["nrefs:2"]
    assert name_references(rate, "var") == [*rate, "nrefs:var"]


@pytest.mark.parametrize(("more", "count"), [([(), ()], "1"), ([("b",), ("c",)], "2"), ([("b",), ()], "var")])
def test_an_evaluation_set_knows_how_many_references_it_has(more: list[tuple[str, ...]], count: str):
    assert EvaluationSet([], ["x", "y"], ["a", "a"], more).num_references == count
