"""Turns documentation in reStructuredText, numpydoc, Google or Markdown style into plain English sentences.

The rules lean to the safe side: a paragraph that is cut in the wrong place leaves pieces that start in lower
case or lack a full stop, and `is_prose` rejects those, so that a wrong guess costs a sentence, not quality.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Stands for text that has no reading as English, such as a formula; `is_prose` rejects sentences with it.
UNREADABLE = "\N{REPLACEMENT CHARACTER}"

PROSE_DIRECTIVES = (
    "note|warning|important|tip|hint|caution|attention|danger|error|admonition|seealso"
    "|versionadded|versionchanged|deprecated"
)
PROSE_DIRECTIVE = re.compile(rf"\.\.\s+(?:{PROSE_DIRECTIVES})::\s*(?:\d[\w.]*\s*)?", re.IGNORECASE)
OTHER_DIRECTIVE = re.compile(r"\.\.(\s|$)|:[^:`]+:(\s|$)")
UNDERLINE = re.compile(r"([=\-~^*#\"'+.:_`])\1{2,}$")
TABLE_ROW = re.compile(r"[|+]|[=-]{2,}(\s+[=-]{2,})+$|.*\S\s{3,}\S")
BULLET = re.compile(r"(?:[-*+\u2022o]|#\.|\d{1,2}[.)]|\(?[a-z\d]\)|[a-z]\.)\s+")
NUMPY_PARAMETER = re.compile(r"[*`\w.,() ]+ : ")
NAMED_ITEM = re.compile(
    r"(?:[`*\"]*\w[\w.]*[`*\"]*(?:\s*\((?:[^()]|\([^()]*\))*\))?"
    r"|(?:New|Added|Changed|Deprecated) in version [\d.]+)(?::| --)\s+(?=\S)"
)

# Each mark with a character that text without the mark lacks, as a search for that is fast.
MARKS = (
    (":", re.compile(r":math:`(\w+)`"), r"\1"),
    (":", re.compile(r":math:`[^`]*`"), UNREADABLE),
    ("$", re.compile(r"\$[^$]+\$"), UNREADABLE),
    ("<", re.compile(r"(?::[\w:+-]+:)?`([^`<>]+?)\s*<[^<>`]+>`(?:__?\b)?"), r"\1"),
    ("~", re.compile(r":[\w:+-]+:`~(?:[^`]*\.)?([^`.]+)`"), r"\1"),
    (":", re.compile(r":[\w:+-]+:`!?([^`]+)`"), r"\1"),
    ("]", re.compile(r"\s*\[(?:\d+|\w*\d{2,4}\w?)\]_"), ""),
    ("]", re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)"), r"\1"),
    ("`", re.compile(r"``(.+?)``"), r"\1"),
    ("`", re.compile(r"`([^`']+)'"), r"'\1'"),
    ("`", re.compile(r"`([^`]+)`(?:__?(?!\w))?"), r"\1"),
    ("(", re.compile(r"(?<=\w)\(\)"), ""),
    ("*", re.compile(r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*"), r"\1"),
    ("*", re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])"), r"\1"),
    ("_", re.compile(r"(?<!\w)_([^\W_]+)_(?!\w)"), r"\1"),
    ("--", re.compile(r"(?<=\s)--(?=\s)"), "-"),
)
TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2013": "-",
        "\u2014": " - ",
    }
)

SENTENCE_END = re.compile(r"[.!?]['\")\]]*\s+")
ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|viz|al|Mr|Mrs|Ms|Dr|Prof|St|[Ff]ig|[Ee]q|[Ss]ec|[Cc]h|[Rr]ef|[Vv]ol|pp"
    r"|approx|resp|incl|aka|a\.k\.a|w\.r\.t|[A-Z])|\.)\.$"
)
LIST_ENDING = re.compile(r"\b(?:etc|Inc|Ltd|Corp|Jr)\.$")

FORBIDDEN = re.compile(
    r"[^ -~]|[=<>{}\\|^~@#$*`\[\]+&%_]|https?:|www\.|\w::|\S\(|\.\.|,,|[!?]{2}|--|\s[.,;:!?)]|\b[A-Z]\. "
    r"|\b(?:TODO|XXX|FIXME)\b|\b(?:e\.g|i\.e|cf|vs)\.$"
)
PLAIN_WORD = re.compile(
    r"[\"'(]*(?:[A-Za-z]?[a-z]+(?:['/-][A-Za-z]?[a-z]+)*'?|[A-Z]{1,5}s?|\d{1,4})[\"')]*[.,;:!?]*[\"')]*$"
)
FUNCTION_WORD = re.compile(
    r"\b(?:the|a|an|is|are|was|were|be|been|of|to|in|on|for|with|by|from|as|at|and|or|not|if|that|this|it|can|will"
    r"|should|must|has|have|does|do|we|you)\b",
    re.IGNORECASE,
)


@dataclass
class ParagraphReader:
    """Collects the lines of one paragraph after another and leaves out what is not prose."""

    lines: list[str] = field(default_factory=list)
    indent: int = 0
    hanging: bool = False
    finished: list[str] = field(default_factory=list)
    skip_deeper_than: int | None = None
    skip_may_be_list: bool = False
    in_doctest: bool = False
    in_fence: bool = False

    def finish_paragraph(self) -> None:
        """Hand over the current paragraph, and leave out the literal block that its colon announces."""
        text = " ".join(self.lines)
        self.lines = []
        if text.endswith("::"):
            self.skip_deeper_than, self.skip_may_be_list = self.indent, False
        elif text.endswith(":") and text.count(" ") >= 2:
            self.skip_deeper_than, self.skip_may_be_list = self.indent, True
        if text:
            self.finished.append(text)

    def start_paragraph(self, text: str, indent: int, hanging: bool) -> None:
        """Finish the current paragraph and start another, whose later lines may be deeper if `hanging`."""
        self.finish_paragraph()
        self.lines, self.indent, self.hanging = ([text] if text else []), indent, hanging

    def skip_block(self, indent: int) -> None:
        """Finish the current paragraph and leave out all following lines deeper than `indent`."""
        self.finish_paragraph()
        self.skip_deeper_than, self.skip_may_be_list = indent, False

    def read_line(self, line: str) -> None:
        """Take one line, with its indent, into account."""
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text.startswith("```"):
            self.finish_paragraph()
            self.in_fence = not self.in_fence
        elif self.in_fence:
            return
        elif not text:
            self.finish_paragraph()
            self.in_doctest = False
        elif text.startswith(">>>"):
            self.finish_paragraph()
            self.in_doctest = True
        elif not self.in_doctest and not self.is_skipped(text, indent):
            self.read_text(text, indent)

    def is_skipped(self, text: str, indent: int) -> bool:
        """Tell whether the line belongs to a block to leave out, and end that block where it does not."""
        if self.lines or self.skip_deeper_than is None:
            return False
        if indent > self.skip_deeper_than and not (self.skip_may_be_list and BULLET.match(text)):
            return True
        self.skip_deeper_than = None
        return False

    def read_text(self, text: str, indent: int) -> None:
        """Take a line that is no part of a skipped block into account."""
        if UNDERLINE.match(text):
            self.lines = []
        elif directive := PROSE_DIRECTIVE.match(text):
            self.start_paragraph(text[directive.end() :], indent, hanging=True)
        elif OTHER_DIRECTIVE.match(text):
            self.skip_block(indent)
        elif TABLE_ROW.match(text):
            self.finish_paragraph()
        elif bullet := BULLET.match(text):
            rest = text[bullet.end() :]
            name = NAMED_ITEM.match(rest)
            self.start_paragraph(rest[name.end() :] if name else rest, indent, hanging=True)
        elif NUMPY_PARAMETER.match(text):
            self.finish_paragraph()
        elif name := NAMED_ITEM.match(text):
            self.start_paragraph(text[name.end() :], indent, hanging=True)
        elif not self.lines or indent < self.indent or (indent > self.indent and not self.hanging):
            self.start_paragraph(text, indent, hanging=False)
        else:
            self.lines.append(text)
        if self.lines and self.lines[-1].endswith(":"):
            self.finish_paragraph()


def extract_paragraphs(document: str) -> list[str]:
    """Return the paragraphs of prose in a document, each unwrapped to one line, with its markup."""
    reader = ParagraphReader()
    for line in inspect.cleandoc(document).splitlines():
        reader.read_line(line)
    reader.finish_paragraph()
    return reader.finished


def strip_marks(paragraph: str) -> str:
    """Replace markup by the words it shows, typographic punctuation by ASCII, white space by spaces."""
    for character, pattern, replacement in MARKS:
        if character in paragraph:
            paragraph = pattern.sub(replacement, paragraph)
    return " ".join(paragraph.translate(TYPOGRAPHY).split())


def split_sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph; a full stop after an abbreviation does not end one."""
    start = 0
    for end in SENTENCE_END.finditer(paragraph):
        sentence = paragraph[start : end.end()].rstrip()
        continues = paragraph[end.end() : end.end() + 1].islower()
        if ABBREVIATION.search(sentence) or (continues and LIST_ENDING.search(sentence)):
            continue
        yield sentence
        start = end.end()
    if start < len(paragraph):
        yield paragraph[start:]


def is_prose(sentence: str) -> bool:
    """Tell whether a candidate reads like one complete English sentence rather than code or a fragment."""
    words = sentence.split()
    return (
        20 <= len(sentence) <= 400
        and len(words) >= 5
        and "A" <= sentence[0] <= "Z"
        and sentence[-1] in ".!?"
        and not FORBIDDEN.search(sentence)
        and sentence.count("(") == sentence.count(")")
        and sentence.count('"') % 2 == 0
        and sum(character.isalpha() or character == " " for character in sentence) >= 0.85 * len(sentence)
        and sum(PLAIN_WORD.match(word) is not None for word in words) >= 0.8 * len(words)
        and len(FUNCTION_WORD.findall(sentence)) >= 1 + len(words) // 12
    )


def extract_sentences(document: str) -> list[str]:
    """Return the sentences of English prose in a docstring, a comment or another piece of documentation."""
    return [
        sentence
        for paragraph in extract_paragraphs(document)
        for sentence in split_sentences(strip_marks(paragraph))
        if is_prose(sentence)
    ]
