"""The largest numbers that a setting or an option may have; what is larger is a slip, and torch would end over it."""

from __future__ import annotations

MOST = 10**9  # of what is counted: updates, examples, tokens
WIDEST = 10**6  # a layer
MOST_AT_ONCE = 10_000  # hypotheses or samples for one example
MOST_SEEDS = 10_000
MOST_JOBS = 1024
LARGEST = 1e9  # a factor or a weight
LARGEST_SEED = 2**63 - 1
