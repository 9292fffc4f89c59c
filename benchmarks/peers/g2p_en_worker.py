"""Words from standard input in the phonemes of g2p-en's network, a line each; runs where g2p-en is installed.

Its dictionary is left empty: that is CMUdict itself, which has every word that there is to test.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import nltk

nltk.download = lambda *_: False  # it would fetch the dictionary, and a tagger that single words have no use for
import g2p_en.g2p  # noqa: E402

g2p_en.g2p.cmudict = SimpleNamespace(dict=dict)
network = g2p_en.g2p.G2p()
for line in sys.stdin:
    print(" ".join(network.predict(line.strip())), flush=True)
