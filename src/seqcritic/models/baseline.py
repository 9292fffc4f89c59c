"""The linear baseline of REINFORCE (Ranzato et al. 2015): the expected return from the actor's state.

Shapes: B examples, T tokens, H actor state.
"""

from __future__ import annotations

from torch import Tensor, nn


class LinearBaseline(nn.Module):
    """b_t = w · s_t + c on detached actor states, so that learning it never moves the actor."""

    def __init__(self, state_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(state_size, 1)
        # From zero: until it has learnt something it takes nothing off the returns.
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Return baselines [B, T] of states [B, T, H]."""
        baselines: Tensor = self.linear(states.detach())[..., 0]
        return baselines
