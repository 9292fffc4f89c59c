"""A user's own score of two texts, lifted to the score of every prefix.

The function is called once for every different prefix, so its cost is B · T calls a batch: a score that is slow on one
pair is slow here. BLEU, ROUGE-L and the edit distance have their own modules, which count in tensors instead.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from seqcritic.errors import NonFiniteError, UserError

TextFunction = Callable[[str, str], float]


class FunctionScore:
    """R(Ŷ) = f(Ŷ, Y) − f(nothing, Y) of a function f(prediction, reference) of texts: larger must be better.

    `decode` turns token numbers, without the end token, into the text that f sees.
    """

    def __init__(self, function: TextFunction, decode: Callable[[list[int]], str]) -> None:
        self.function = function
        self.decode = decode

    def prefix_scores(
        self, predictions: Tensor, prediction_lengths: Tensor, references: Tensor, reference_lengths: Tensor
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token.

        Pairs that occur more than once in the batch are scored once.
        """
        known: dict[tuple[str, str], float] = {}
        num_steps = predictions.shape[1]
        rows = []
        for prediction, length, reference, reference_length in zip(
            predictions.tolist(),
            prediction_lengths.tolist(),
            references.tolist(),
            reference_lengths.tolist(),
            strict=True,
        ):
            target = self.decode(reference[:reference_length])
            values = []
            for end in range(length + 1):
                pair = (self.decode(prediction[:end]), target)
                if pair not in known:
                    known[pair] = call_on_pair(self.function, *pair)
                values.append(known[pair])
            values += values[-1:] * (num_steps - length)
            rows.append([value - values[0] for value in values])
        scores = torch.tensor(rows, dtype=torch.float64, device=predictions.device)
        return scores.to(torch.get_default_dtype())


def call_on_pair(function: TextFunction, prediction: str, reference: str) -> float:
    """Return the function's score of one pair, or name the pair for which it has none."""
    pair = f"on prediction {prediction!r} and reference {reference!r}"
    try:
        value: object = function(prediction, reference)
    except (Exception, SystemExit) as error:
        raise UserError(f"score function {name_of(function)} failed {pair}: {error!r}") from error
    if not isinstance(value, Real):
        raise UserError(f"score function {name_of(function)} returned {type(value).__name__}, not a number, {pair}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NonFiniteError(f"score function {name_of(function)} returned {number} {pair}")
    return number


def name_of(function: TextFunction) -> str:
    """Return module:function as in a recipe, or the representation of a callable object that has no name."""
    name = getattr(function, "__qualname__", None)
    return repr(function) if name is None else f"{function.__module__}:{name}"


def load_function(path: str) -> TextFunction:
    """Import the function that "module:function" names; or say why there is none."""
    module_name, _, name = path.partition(":")
    if not (all(part.isidentifier() for part in module_name.split(".")) and name.isidentifier()):
        raise UserError(f"'{path}' names no function; write 'module:function', as in 'my_scores:overlap'")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise UserError(f"'{path}': importing '{module_name}' failed: {error}") from error
        raise UserError(
            f"'{path}': no module '{error.name}'; write it without '.py' and set PYTHONPATH to its folder"
        ) from error
    except Exception as error:
        raise UserError(f"'{path}': importing '{module_name}' failed: {error!r}") from error
    try:
        function: object = getattr(module, name)
    except AttributeError as error:
        callables = [member for member, value in vars(module).items() if callable(value)]
        close = difflib.get_close_matches(name, callables, n=1, cutoff=0.5)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise UserError(f"'{path}': module '{module_name}' has no '{name}'{hint}") from error
    if not callable(function):
        raise UserError(f"'{path}' is {type(function).__name__}, not a function")
    return function
