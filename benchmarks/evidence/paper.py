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
