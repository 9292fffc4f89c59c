"""A user's own function as a score: of two texts, or of lists of them.

Its parameters say what it is given:

- `f(prediction, reference)`: two texts in, a number out. Of several references the best counts.
- `f(predictions, references)`: lists in, a list of numbers out, in as few calls as there are batches.
- `all_references` in the place of the second: all references of a prediction, or a list of such lists.
- `source`, or `sources` of lists, wherever it stands: what the prediction was made from.

A slow function is slow here: with `score.shaping` it is asked for every different prefix of every sample.
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
from typing import Any

import torch

from seqcritic.contracts.score import References, Score
from seqcritic.errors import NonFiniteError, UserError
from seqcritic.scores.shared.means import MeanOfSentences
from seqcritic.scores.shared.texts import Compared, TextScore, as_compared

Function = Callable[..., Any]
ScoredPair = tuple[Compared, str | list[str]]
"""A prediction, and the one or all references that a function compares it with."""
LISTS, ALL_REFERENCES = "predictions", "all_references"
SOURCES = ("source", "sources")


class FunctionScore(MeanOfSentences, TextScore):
    """R(Ŷ) = f(Ŷ, Y) − f(nothing, Y) of a function f of texts: larger must be better. A corpus has its mean.

    f sees predictions and raw references as people do, with `lowercase` in lower case. `version` is what the signature
    says of its code.
    """

    corpus_unit = 1.0

    def __init__(
        self, function: Function, name: str | None = None, *, lowercase: bool = False, version: str = ""
    ) -> None:
        self.function = function
        self.name = name or name_of(function)
        self.description = self.name
        self.lowercase = lowercase
        self._version = version
        parameters = _parameters(function)
        self.takes_lists = LISTS in parameters
        self.takes_all_references = ALL_REFERENCES in parameters
        self.reads_sources = any(name in parameters for name in SOURCES)

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return f of each row, the best over references unless f takes all of them."""
        if self.takes_all_references:
            return self._call([(row, list(row.references)) for row in rows])
        # One call for all references of all rows; the best of each row is picked afterwards.
        found = iter(self._call([(row, text) for row in rows for text in row.references]))
        return [max(next(found) for _ in row.references) for row in rows]

    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """Return f of each sentence."""
        rows = as_compared(predictions, references, self.lowercase, sources if self.reads_sources else None)
        return self.values(rows)

    def signature(self) -> list[str]:
        """Return the score's name, whether case was left out, and the version of the code."""
        case = ["case:lc"] if self.lowercase else []
        return [f"score:{self.name}", *case, *([self._version] if self._version else [])]

    def _call(self, pairs: list[ScoredPair]) -> list[float]:
        """Return f of every pair; where it has no value, a UserError names the pair."""
        # One call for each pair: a fault then names the very pair on which it happened.
        if not self.takes_lists:
            return [
                self._number(self._try([pair], row.prediction, target, row.source), pair)
                for pair in pairs
                for row, target in [pair]
            ]
        # A function of lists need not know what to do with empty ones.
        if not pairs:
            return []
        predictions, targets = [row.prediction for row, _ in pairs], [target for _, target in pairs]
        values = self._try(pairs, predictions, targets, [row.source for row, _ in pairs])
        try:
            # Whatever can be gone through will do: a tuple, an array, a tensor, a generator.
            listed = list(values)
        except TypeError:
            listed = None
        if listed is None or len(listed) != len(pairs):
            count = type(values).__name__ if listed is None else f"{len(listed)} numbers"
            raise UserError(
                f"score function {name_of(self.function)} returned {count}, not a list of {len(pairs)}; return "
                "one number for each prediction"
            )
        return [self._number(value, pair) for value, pair in zip(listed, pairs, strict=True)]

    def _try(self, pairs: list[ScoredPair], predictions: Any, references: Any, sources: Any) -> Any:
        # False is 0 and True is 1: `source` of single texts, `sources` of lists.
        given = {SOURCES[self.takes_lists]: sources} if self.reads_sources else {}
        try:
            return self.function(predictions, references, **given)
        # A script that calls sys.exit within a function would end the training without a word.
        except (Exception, SystemExit) as error:
            raise UserError(f"score function {name_of(self.function)} failed {_tell(pairs)}: {error!r}") from error

    def _number(self, value: object, pair: ScoredPair) -> float:
        name = name_of(self.function)
        # Metrics of neural libraries return tensors of one number.
        value = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
        if not isinstance(value, Real):
            shape = f" of {value.numel()} numbers" if isinstance(value, torch.Tensor) else ""
            told = f"returned {type(value).__name__}{shape}, not a number, {_tell([pair])}"
            raise UserError(f"score function {name} {told}; return a float")
        try:
            number = float(value)
        # A whole number may be larger than any float.
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise NonFiniteError(f"score function {name} returned {number} {_tell([pair])}; return a finite number")
        return number


def as_score(given: Score | Function, name: str | None = None) -> Score:
    """Return what a user passes from Python as a score: a score as it is, a function as the score of its values."""
    return given if isinstance(given, Score) else FunctionScore(given, name)


def try_on(score: FunctionScore, examples: Sequence[tuple[str, tuple[str, ...]]], trained_for: bool = True) -> None:
    """Call a function on nothing, on half of a reference and on the whole; a fault is a UserError in one line.

    `examples` are sources with their references. A function that is not `trained_for` by itself, such as a penalty in a
    sum, may give a reference less than the empty prediction. Without this trial a fault would show only after all
    pre-training, at the first prediction that is empty.
    """
    for source, references in examples:
        reference, *_ = references
        # Half of it: a text that is neither empty nor right, as most predictions in training are.
        predictions = ("", reference[: len(reference) // 2], reference)
        rows = as_compared(predictions, [references] * 3, score.lowercase, [source] * 3)
        try:
            of_nothing, _, of_all = score.values(rows)
        except NonFiniteError as error:
            raise UserError(str(error)) from error
        if trained_for and of_all < of_nothing:
            raise UserError(
                f"score function {name_of(score.function)} gives the reference {reference!r} itself {of_all:g} and the "
                f"empty prediction {of_nothing:g}; larger must be better"
            )


def name_of(function: Function) -> str:
    """Return module:function as in a recipe, or the representation of a callable object that has no name."""
    name = getattr(function, "__qualname__", None)
    return repr(function) if name is None else f"{function.__module__}:{name}"


def load_score(path: str, lowercase: bool) -> FunctionScore:
    """Return the score of the function that "module:function" names."""
    return FunctionScore(load_function(path), path, lowercase=lowercase, version=f"code:{digest_code(path)}")


def load_function(path: str) -> Function:
    """Import the function that "module:function" names; or say why there is none."""
    module_name, _, name = path.partition(":")
    # Before anything is imported: a path of a file would fail with a message that says nothing of its form.
    if not (all(part.isidentifier() for part in module_name.split(".")) and name.isidentifier()):
        raise UserError(f"'{path}' names no function; write 'module:function', as in 'my_scores:overlap'")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Missing is neither the named module nor a package around it: it was found, and something that it imports was
        # not. The dots keep `ab` from passing as a package around `abc`.
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
    # The named module may only import the function, or wrap it: what it computes may then stand in another.
    defined_in = inspect.getmodule(inspect.unwrap(function))
    modules = {module_name: sys.modules[module_name]} | ({defined_in.__name__: defined_in} if defined_in else {})
    for module in modules.values():
        try:
            digest.update(inspect.getsource(module).encode())
        except (OSError, TypeError):
            return "unknown"
    return digest.hexdigest()


def _tell(pairs: list[ScoredPair]) -> str:
    """Return the words that name what a function was called on."""
    row, target = pairs[0]
    first = f"on prediction {row.prediction!r} and reference {target!r}"
    return first if len(pairs) == 1 else f"{first} and {len(pairs) - 1} others"


def _parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters; none where they are not known, as of some compiled functions."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
