"""The sections of the settings that name scores: what is trained for, and what is watched beside it."""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from seqcritic.contracts.registry import SCORES
from seqcritic.settings.base import Paths, Section, SignedWeight
from seqcritic.settings.data import OBJECT

WEIGHTED_SUM = "weighted-sum"


def check_score_name(path: str, value: str) -> str:
    """Return the first name of a score that settings name at a dotted path; refuse one that is not known."""
    # By its form alone: the module of a user's function is imported where the score is built.
    if not re.fullmatch(r"[\w.]+:\w+", value) and value not in (OBJECT, *SCORES.names()):
        known = f"known: {', '.join(SCORES.names())}, module:function"
        raise ValueError(f"{path}: unknown score '{value}'{SCORES.nearest(value)}; {known}")
    # One score has one name in folders and signatures: else two runs of it would seem to differ.
    return SCORES.aliases.get(value, value)


class PartOfScore(Section):
    """One score of a weighted sum."""

    name: str = Field(description="a score of docs/scores.md, or module:function")
    weight: SignedWeight = Field(1.0, description="of the score in its unit of one (docs/scores.md); not 0")


class ScoreSettings(Section):
    """The score trained for."""

    name: str = Field(
        "edit-distance",
        description="a score of docs/scores.md, or module:function for f(prediction, reference) -> float",
    )
    normalise: bool = Field(
        False, description="divide edit distances by |Y| as the paper writes; false as the authors ran it"
    )
    shaping: bool = Field(True, description="reward every token by the change of the score, not only the last")
    capped: bool = Field(False, description="in the reported CER, limit each sentence's error to 1")

    parts: tuple[PartOfScore, ...] = Field(
        (),
        description="train for the weighted sum of several scores: [{name: bleu, weight: 1}, {name: ter, weight: 0.2}]",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_the_sum(cls, tree: Any) -> Any:
        # The default name is no sum's: without this, `parts` alone would be refused for a name nobody gave.
        if isinstance(tree, dict) and tree.get("parts") and "name" not in tree:
            return {**tree, "name": WEIGHTED_SUM}
        return tree

    @field_validator("name")
    @classmethod
    def _is_known(cls, value: str) -> str:
        return check_score_name("score.name", value)

    @field_validator("parts")
    @classmethod
    def _are_known(cls, parts: tuple[PartOfScore, ...]) -> tuple[PartOfScore, ...]:
        found = []
        for place, part in enumerate(parts):
            path = f"score.parts.{place}"
            if part.weight == 0:
                raise ValueError(f"{path}.weight: 0 leaves the score out; evaluation.also watches one without training")
            name = check_score_name(f"{path}.name", part.name)
            # A part has no place for the parts of a sum, nor for an object of Python.
            if name in (WEIGHTED_SUM, OBJECT):
                raise ValueError(f"{path}.name: '{name}' cannot be a part; name the scores themselves")
            found.append(part.model_copy(update={"name": name}))  # sections are frozen
        return tuple(found)

    @model_validator(mode="after")
    def _has_its_parts(self) -> Self:
        if self.parts and self.name not in (WEIGHTED_SUM, OBJECT):
            raise ValueError(f"score.name: '{self.name}', but score.parts is given; set score.name={WEIGHTED_SUM}")
        if self.name == WEIGHTED_SUM and not self.parts:
            raise ValueError("score.parts: give the scores to add up, as in [{name: bleu, weight: 1}]")
        return self

    @property
    def names(self) -> dict[str, str]:
        """The names of all scores that rewards are made of, by where they stand."""
        if not self.parts:
            return {"score.name": self.name}
        return {f"score.parts.{place}.name": part.name for place, part in enumerate(self.parts)}

    @property
    def has_lookahead(self) -> bool:
        """Whether the score tells what each next token is worth; its module is imported to know."""
        # All of them: a sum knows what a token is worth only if each of its parts does.
        return all(
            ":" not in name and name != OBJECT and SCORES.find(name).has_lookahead for name in self.names.values()
        )


class EvaluationSettings(Section):
    """What is looked at beside the score that is trained for."""

    also: Paths = Field(
        (),
        description="other scores, watched at every evaluation and reported: a model that learns to please one score "
        "alone shows in them",
    )

    @field_validator("also")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        found = [check_score_name(f"evaluation.also.{place}", name) for place, name in enumerate(names)]
        for place, name in enumerate(found):
            if name in (WEIGHTED_SUM, OBJECT) or name in found[:place]:
                raise ValueError(f"evaluation.also.{place}: '{name}' cannot be watched, or is named twice")
        return tuple(found)
