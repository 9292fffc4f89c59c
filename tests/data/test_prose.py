"""Checks of the way from documentation to sentences against examples written by hand."""

from __future__ import annotations

import pytest

from seqcritic.data.prose import extract_paragraphs, extract_sentences, is_prose, split_sentences, strip_marks

NUMPY_STYLE = """
    Return the median along an axis.

    It is computed over the flattened
    array by default. See `numpy.mean` too.

    Parameters
    ----------
    a : array_like
        Input array or object that can be
        converted to an array.
    axis : int, optional
        Axis of the sum.

        .. versionadded:: 1.7.0

    See Also
    --------
    mean, percentile : Compute the mean or a percentile of the data.

    Notes
    -----
    The middle value is taken when ``N`` is odd [1]_.

    .. math:: x = y

       This is the formula of the text.

    Examples
    --------
    >>> the_example()
    This is the output of the code.

    The input may be changed by this call.

    .. [1] This is a reference to the book.
    """

GOOGLE_STYLE = """Applies the layer to all of the inputs.

    Args:
        weight (Tensor, optional): The weight of each of the
            classes in the sum.
        bias: the bias that is added.

    .. note:: The layer is :class:`~torch.nn.Linear` in disguise.
        It has no state of its own.

    Example::

        This is the code of the example.

    Use it with care and with the other layers:

        This is a block after a colon.

    - The first item of the list is here.
    - The second item of the list
      goes on in this line.

    :param x: This is the text of a field.

    ```python
    This is the code in the fence.
    ```

    ====  =====
    one   This is a row of the table.
    ====  =====
    """


def test_numpy_style_documentation() -> None:
    assert extract_sentences(NUMPY_STYLE) == [
        "Return the median along an axis.",
        "It is computed over the flattened array by default.",
        "Input array or object that can be converted to an array.",
        "The middle value is taken when N is odd.",
        "The input may be changed by this call.",
    ]


def test_google_style_documentation() -> None:
    assert extract_sentences(GOOGLE_STYLE) == [
        "Applies the layer to all of the inputs.",
        "The weight of each of the classes in the sum.",
        "The layer is Linear in disguise.",
        "It has no state of its own.",
        "The first item of the list is here.",
        "The second item of the list goes on in this line.",
    ]


def test_paragraphs_are_unwrapped_and_titles_dropped() -> None:
    assert extract_paragraphs("Title\n=====\n\nOne line\nand another.\n\nSecond.") == [
        "One line and another.",
        "Second.",
    ]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("a ``code`` word", "a code word"),
        ("a `name` and `link`_ word", "a name and link word"),
        ("the :class:`~package.module.Name` class", "the Name class"),
        ("the :func:`package.name` function", "the package.name function"),
        ("see :ref:`the text <the-label>` there", "see the text there"),
        ("some *slanted* and **bold** words", "some slanted and bold words"),
        ("a [title](https://example.org/page) link", "a title link"),
        ("calls close() at the end", "calls close at the end"),
        ("the `default' type", "the 'default' type"),
        ("the \u201cquoted\u201d reader\u2019s text\u2014here", 'the "quoted" reader\'s text - here'),
        ("size :math:`n` or :math:`n^2`", "size n or \ufffd"),
        ("two  spaces\tand a tab", "two spaces and a tab"),
    ],
)
def test_marks_are_stripped(marked: str, plain: str) -> None:
    assert strip_marks(marked) == plain


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("It is one. It is two! Is it three?", ["It is one.", "It is two!", "Is it three?"]),
        ("Use a list, e.g. This one, i.e. it. Done.", ["Use a list, e.g. This one, i.e. it.", "Done."]),
        ("Lists, sets, etc. are fine.", ["Lists, sets, etc. are fine."]),
        ("It takes lists, sets, etc. They are fine.", ["It takes lists, sets, etc.", "They are fine."]),
        ("Version 2.5 of torch.nn is used.", ["Version 2.5 of torch.nn is used."]),
        ('He said "Stop." Then (it ended.) All.', ['He said "Stop."', "Then (it ended.)", "All."]),
    ],
)
def test_paragraphs_are_split(paragraph: str, sentences: list[str]) -> None:
    assert list(split_sentences(paragraph)) == sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "Return the number of items in the list.",
        "If the file (or folder) isn't there, it is made.",
        "Is the cache of the GPU in use?",
    ],
)
def test_prose_is_kept(sentence: str) -> None:
    assert is_prose(sentence)


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("returns the number of items in the list.", "lower case"),
        ("Returns the number of items in the list", "no full stop"),
        ("This is too short.", "four words"),
        ("I do as I do.", "nineteen characters at most"),
        ("The value of x = y is returned to it.", "code"),
        ("The value of my_name is returned to it.", "identifier"),
        ("The page is at https://example.org for all.", "address"),
        ("The list (of items is returned to it.", "open parenthesis"),
        ('The "list of items is returned to it.', "open quotation"),
        ("The numbers 12, 34, 56, 78 and 90, 11, 12.", "too few letters"),
        ("The FooBar BarBaz BazFoo is a QuxBar.", "too few plain words"),
        ("Flatten arguments using other flatten helpers.", "no function word"),
        ("The na\u00efve way is not the best one.", "not ASCII"),
        ("The size is \ufffd in the other case.", "formula"),
        ("The way out is " + "the way and " * 40 + "so on.", "too long"),
    ],
)
def test_other_text_is_rejected(sentence: str, fault: str) -> None:
    assert not is_prose(sentence), fault
