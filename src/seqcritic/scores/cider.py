"""CIDEr (Vedantam et al. 2015), as caption benchmarks report it: what a caption shares with all of its references.

Each n-gram g of a caption c weighs tf_c(g) · idf(g): how often it stands there, times log N − log max(1, df(g)), where
df(g) of N examples have it in a reference. For n = 1..4 and each reference Y,

    s_n(c, Y) = Σ_g min(w_c(g), w_Y(g)) · w_Y(g) / (‖w_c‖ ‖w_Y‖) · exp(−(l_c − l_Y)² / 2σ²),   σ = 6,

with l the number of pairs of neighbouring words, and CIDEr is 10 times the mean over n and over references: with its
clipping and its penalty on length what papers call CIDEr-D, and what pycocoevalcap calls CIDEr.

Nothing is recounted from prefix to prefix: the k-th time that g stands in it, it adds idf² · tf_Y · [k ≤ tf_Y] to the
sum and idf² · (2k − 1) to ‖w_c‖², both running sums.

Shapes: B examples, T prediction tokens, R references, U reference tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import References, Scorable, ScoreOptions, hold_last
from seqcritic.errors import UserError
from seqcritic.scores.shared.means import MeanOfSentences
from seqcritic.scores.shared.ngrams import all_matches, matched_ngrams, sum_prefixes
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

MAX_ORDER = 4
DEVIATION = 6.0  # σ of the penalty on length, in pairs of words
FULL = 10.0  # of a prediction that is its only reference
Ngram = tuple[Any, ...]


class Frequencies:
    """In how many examples an n-gram stands, and so how much it tells."""

    def __init__(self, examples: Iterable[Sequence[Sequence[Any]]]) -> None:
        self._found: Counter[Ngram] = Counter()
        count = 0
        for references in examples:
            # A set: an n-gram counts once an example, however many of its references have it.
            self._found.update({ngram for tokens in references for ngram in list_ngrams(tokens)})
            count += 1
        self._most = math.log(max(count, 1))

    def weigh(self, ngram: Ngram) -> float:
        """Return idf, log N − log df; an n-gram that stands in no reference counts as if it stood in one."""
        return self._most - math.log(max(1, self._found[ngram]))

    def weigh_all(self, tokens: Tensor, order: int) -> Tensor:
        """Return the idf [N, T − n + 1] of the n-grams of tokens [N, T]."""
        positions = range(max(tokens.shape[1] - order + 1, 0))
        rows = [
            [self.weigh(tuple(row[position : position + order])) for position in positions] for row in tokens.tolist()
        ]
        return torch.tensor(rows, dtype=torch.float64, device=tokens.device).view(len(tokens), len(positions))


def list_ngrams(tokens: Sequence[Any]) -> Iterable[Ngram]:
    """Yield all n-grams of up to four tokens."""
    for order in range(1, MAX_ORDER + 1):
        for position in range(len(tokens) - order + 1):
            yield tuple(tokens[position : position + order])


def sentence_cider(prediction: Sequence[Any], references: Sequence[Sequence[Any]], known: Frequencies) -> float:
    """Return CIDEr of one caption."""
    ours = Counter(list_ngrams(prediction))
    found = [_similarity(ours, Counter(list_ngrams(own)), len(prediction), len(own), known) for own in references]
    return FULL * sum(found) / len(found)


def _similarity(ours: Counter[Ngram], theirs: Counter[Ngram], length: int, other: int, known: Frequencies) -> float:
    """Return the mean over n of s_n of one reference."""
    common, of_ours, of_theirs = ([0.0] * MAX_ORDER for _ in range(3))
    for counts, norms in ((ours, of_ours), (theirs, of_theirs)):
        for ngram, count in counts.items():
            norms[len(ngram) - 1] += (count * known.weigh(ngram)) ** 2
    for ngram, count in ours.items():
        # Clipped at the reference's count: a rare word that is said more often than there earns nothing more.
        common[len(ngram) - 1] += min(count, theirs[ngram]) * theirs[ngram] * known.weigh(ngram) ** 2
    cosines = [
        # A text of fewer than n words, or one whose n-grams all have idf 0, has no length to divide by.
        shared / math.sqrt(one * two) if one * two else 0.0
        for shared, one, two in zip(common, of_ours, of_theirs, strict=True)
    ]
    apart = max(length - 1, 0) - max(other - 1, 0)
    return math.exp(-(apart**2) / (2 * DEVIATION**2)) * sum(cosines) / MAX_ORDER


@register_score("cider")
class CiderScore(MeanOfSentences, TokenScore):
    """R(Ŷ) = |Y| · CIDEr / 10 in tokens; n-grams with the `unknown` token match nothing.

    Times |Y| / 10, a prediction of four words or more that is its only reference scores |Y|, as with BLEU. Document
    frequencies of rewards are of the validation references, a fixed text that every run has and knows by a hash.

    The corpus score is that of pycocoevalcap, from 0 to 10, in what `split` makes of a text, `rules` being its name;
    document frequencies are of the references that are evaluated, as there. The mean over all references counts: a
    prediction is good when it says what most people said. In rewards a reference that equals the first one is left out.
    """

    name = "CIDEr"
    corpus_unit = FULL
    description = "CIDEr / 10 × reference length"

    def __init__(
        self,
        unknown: int | None = None,
        *,
        split: Callable[[str], list[str]] | None = None,
        rules: str = "",
        lowercase: bool = False,
        tokens: str = "words",
    ) -> None:
        self.unknown = unknown
        self.split = split or str.split
        self.rules = rules if split else ""
        self.lowercase = lowercase
        self.surrogate = f"length*cider:{tokens}"
        self._read: Callable[[], Sequence[Sequence[list[int]]]] | None = None
        self._known: Frequencies | None = None

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """CIDEr of words as the model's own rules split them, or of tokens as they come."""
        return cls(
            options.unknown,
            split=options.split,
            rules=options.rules,
            lowercase=options.lowercase,
            tokens=options.tokens,
        )

    def read_corpus(self, read: Callable[[], Sequence[Sequence[list[int]]]]) -> None:
        """Take document frequencies, when they are first needed, from these references as ids."""
        # Not read here: a score that is asked for corpus scores alone never pays for the validation references.
        self._read, self._known = read, None

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        predictions, references, lengths = batch.predictions, batch.references, batch.reference_lengths
        num_steps, known = predictions.shape[1], self._frequencies()
        steps = torch.arange(num_steps + 1, device=predictions.device)
        # Made order by order below: only the tables of one order are in memory at a time.
        ngrams = matched_ngrams(predictions, all_matches(batch, self.unknown), MAX_ORDER)
        norms = self._norms(references.flatten(0, 1), lengths.flatten(), known)  # each [B · R]
        cosines = torch.zeros((*lengths.shape, num_steps + 1), dtype=torch.float64, device=predictions.device)
        for order, (before, found) in enumerate(ngrams, start=1):
            squares = known.weigh_all(predictions, order).square()  # [B, T − n + 1]
            # (k² − (k − 1)²) = 2k − 1 with k = before + 1: what an n-gram adds to ‖w_c‖² the k-th time it stands there.
            ours = sum_prefixes(squares * (2 * before + 1), num_steps)[:, None]
            theirs = norms[order - 1].view_as(lengths)[:, :, None]
            # Each of its first tf_Y occurrences adds tf_Y, later ones nothing: min(tf_c, tf_Y) · tf_Y in all.
            common = sum_prefixes(squares[:, None] * found * (before[:, None] < found), num_steps)
            product = (ours * theirs).sqrt()
            cosines += torch.where(product > 0, common / product.clamp(min=1e-300), 0.0) / MAX_ORDER
        # Pairs of neighbouring words, of which a text of one word has none, and so has the empty one. [B, R, T + 1]
        apart = (steps - 1).clamp(min=0) - (lengths[:, :, None] - 1).clamp(min=0)
        scores = cosines * (-apart.double().square() / (2 * DEVIATION**2)).exp()
        # Where an example has fewer references than others its first one stands again.
        alike = (references == references[:, :1]).all(dim=2) & (lengths == lengths[:, :1])
        distinct = ~alike
        # The first one equals itself, but it is no repetition.
        distinct[:, 0] = True
        means = (scores * distinct[:, :, None]).sum(dim=1) / distinct.sum(dim=1, keepdim=True)
        # The means are CIDEr / 10 already: cosines were divided by four orders and not multiplied by 10.
        return hold_last(means * lengths[:, :1], batch.lengths).to(torch.get_default_dtype())

    def _norms(self, tokens: Tensor, lengths: Tensor, known: Frequencies) -> list[Tensor]:
        """Return for n = 1..4 the squared norms [N] of tokens [N, U] up to lengths [N]."""
        # Compared with no reference: only how often an n-gram stood before in the same text is asked for.
        alone = tokens.new_zeros((len(tokens), 1, tokens.shape[1], 0), dtype=torch.bool)
        norms = []
        for order, (before, _) in enumerate(matched_ngrams(tokens, alone, MAX_ORDER), start=1):
            terms = known.weigh_all(tokens, order).square() * (2 * before + 1)
            # An n-gram counts where its last token does: behind the length stands padding.
            within = torch.arange(terms.shape[1], device=tokens.device) + order <= lengths[:, None]
            norms.append((terms * within).sum(dim=1))
        return norms

    def _frequencies(self) -> Frequencies:
        if self._known is None:
            if self._read is None:
                raise UserError(
                    "cider: rewards need references to count how common words are; call read_corpus, as a run does"
                )
            examples = self._read()
            if len(examples) < 2:
                raise UserError("cider: data.valid has one example, so that no word is rarer than another; give more")
            self._known = Frequencies([[self._without_unknown(own) for own in references] for references in examples])
        return self._known

    def _without_unknown(self, tokens: list[int]) -> list[Any]:
        """Return the tokens with None for unknown ones, which no lookup finds: they stand for different words."""
        return [None if token == self.unknown else token for token in tokens]

    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """Return CIDEr of each sentence, by the document frequencies of all these references."""
        rows = [
            (self.split(row.prediction), [self.split(text) for text in row.references])
            for row in as_compared(predictions, references, self.lowercase)
        ]
        known = Frequencies(own for _, own in rows)
        return [sentence_cider(prediction, own, known) for prediction, own in rows]

    def signature(self) -> list[str]:
        """Return the name, n, σ, where frequencies are from, what counts as a word and whether case was left out."""
        case = ["case:lc"] if self.lowercase else []
        return ["score:CIDEr", "n:4", "sigma:6", "df:references", f"tok:{self.rules or 'none'}", *case]
