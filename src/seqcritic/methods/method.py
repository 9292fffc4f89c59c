"""What all methods that learn from rewards are made of."""

from __future__ import annotations

from seqcritic.contracts.method import Method
from seqcritic.contracts.score import Score
from seqcritic.settings.base import Section
from seqcritic.settings.methods import MethodSettings


class RewardMethod(Method):
    """The base of all methods but likelihood: settings, score and shaping, as they were given."""

    own: Section
    """Its own section of the settings; a method says of which class."""

    def __init__(self, settings: MethodSettings, score: Score, shaping: bool) -> None:
        self.settings = settings
        self.score = score
        self.shaping = shaping
        self.own = settings.own
