"""Figures of the paper (Bahdanau et al. 2017) that ours stand beside."""

from __future__ import annotations

SETTINGS = ("L10-eta0.3", "L30-eta0.3", "L10-eta0.5", "L30-eta0.5")
METHODS = ("likelihood", "actor-critic", "reinforce-critic", "actor-critic+likelihood", "reinforce-critic+likelihood")
CHARACTER_ERROR_RATES = {  # Table 1
    "L10-eta0.3": (17.81, 17.24, 17.82, 16.65, 16.97),
    "L30-eta0.3": (18.4, 17.31, 18.16, 17.1, 17.47),
    "L10-eta0.5": (38.12, 35.89, 35.84, 34.6, 35.0),
    "L30-eta0.5": (40.87, 37.0, 37.6, 36.36, 36.6),
}
TABLE_1 = {  # by how many percent a method is better than likelihood
    setting: {method: 100 * (1 - rate / rates[0]) for method, rate in zip(METHODS[1:], rates[1:], strict=True)}
    for setting, rates in CHARACTER_ERROR_RATES.items()
}

# BLEU, greedy and with beam search, by the encoder of the actor.
IWSLT_2014 = {
    "window": {  # Table 2
        "likelihood": (19.33, 21.46),
        "reinforce": (20.92, 21.35),
        "reinforce-critic": (22.24, 22.58),
        "actor-critic": (21.66, 22.45),
    },
    "bidirectional": {  # Table 3
        "likelihood": (25.82, 27.56),
        "reinforce-critic": (27.42, 27.75),
        "reinforce-critic+likelihood": (27.7, 28.3),
        "actor-critic": (27.27, 27.75),
        "actor-critic+likelihood": (27.49, 28.53),
    },
}


def bleu_gain(encoder: str, method: str) -> tuple[float, float] | None:
    """Return by how much BLEU a method of the paper is better than likelihood, greedily and with beam search."""
    table = IWSLT_2014[encoder]
    if method not in table:
        return None
    (greedy, beam), (base_greedy, base_beam) = table[method], table["likelihood"]
    return greedy - base_greedy, beam - base_beam
