"""A user's own score of two texts, lifted to the score of every prefix.

The function is called once for every different prefix, so its cost is B · T calls a batch: a score that is slow on one
pair is slow here. BLEU, ROUGE-L and the edit distance have their own modules, which count in tensors instead.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from numbers import Real

import torch
from torch import Tensor

from seqcritic.errors import NonFiniteError, UserError
from seqcritic.scores.score import Texts, in_lower_case

TextFunction = Callable[[str, str], float]
Decoder = Callable[[list[int]], str]


class FunctionScore:
    """R(Ŷ) = f(Ŷ, Y) − f(nothing, Y) of a function f(prediction, reference) of texts: larger must be better.

    f sees what the corpus score shows it: predictions as `decode` makes them of token numbers without the end token,
    and raw references, with `lowercase` in lower case. A part of a reference has no raw text: `decode_part` makes one
    of its tokens, in which no unknown token equals one of a prediction.
    """

    def __init__(self, function: TextFunction, decode: Decoder, decode_part: Decoder, lowercase: bool = False) -> None:
        self.function = function
        self.decode = decode
        self.decode_part = decode_part
        self.lowercase = lowercase

    def prefix_scores(
        self,
        predictions: Tensor,
        prediction_lengths: Tensor,
        references: Tensor,
        reference_lengths: Tensor,
        reference_texts: Texts | None = None,
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token.

        Pairs that occur more than once in the batch are scored once.
        """
        targets = self._targets(references, reference_lengths) if reference_texts is None else reference_texts()
        if self.lowercase:
            targets = in_lower_case(targets)
        known: dict[tuple[str, str], float] = {}
        num_steps = predictions.shape[1]
        rows = []
        for prediction, length, target in zip(predictions.tolist(), prediction_lengths.tolist(), targets, strict=True):
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

    def _targets(self, references: Tensor, reference_lengths: Tensor) -> list[str]:
        rows = zip(references.tolist(), reference_lengths.tolist(), strict=True)
        return [self.decode_part(reference[:length]) for reference, length in rows]


def try_on(function: TextFunction, references: Sequence[str]) -> None:
    """Call a function on nothing, on half of each reference and on the whole; a fault is a UserError in one line.

    In training it would be found only after all pre-training, at the first prediction that is empty.
    """
    for reference in references:
        try:
            of_nothing, _, of_all = (
                call_on_pair(function, prediction, reference)
                for prediction in ("", reference[: len(reference) // 2], reference)
            )
        except NonFiniteError as error:
            raise UserError(str(error)) from error
        if of_all < of_nothing:
            raise UserError(
                f"score function {name_of(function)} gives the reference {reference!r} itself {of_all:g} and the empty "
                f"prediction {of_nothing:g}; larger must be better"
            )


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


def digest_code(path: str) -> str:
    """Return a short hash of the source of the module that "module:function" names and of the one it is defined in.

    Two versions of a score are two scores. What these modules import is not in the hash. Where there is no source, as
    of a compiled function, it says `unknown`.
    """
    module_name, _, name = path.partition(":")
    function = getattr(importlib.import_module(module_name), name)
    digest = hashlib.blake2b(digest_size=6)
    defined_in = inspect.getmodule(inspect.unwrap(function))
    modules = {module_name: sys.modules[module_name]} | ({defined_in.__name__: defined_in} if defined_in else {})
    for module in modules.values():
        try:
            digest.update(inspect.getsource(module).encode())
        except (OSError, TypeError):
            return "unknown"
    return digest.hexdigest()
