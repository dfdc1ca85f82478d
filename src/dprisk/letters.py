"""Text of other people, shown so that it cannot do harm: no letter steers a terminal, or turns what follows it."""

import unicodedata

HIDDEN = {"Cc", "Cs", "Zl", "Zp"}  # control characters, half characters, and line ends of other alphabets
TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # turn the direction of what follows


def visible(text: str) -> str:
    """Text as it is, but for what would steer a terminal or a page: that is shown by its code, as in \\x1b.

    >>> visible("flu, Grippe, 🤧 :smile: [b]")
    'flu, Grippe, 🤧 :smile: [b]'
    >>> print(visible("red\\x1b[31m"))
    red\\x1b[31m
    """
    return "".join(_shown(letter) for letter in text)


def visible_lines(text: str) -> str:
    """The same of text that may have several lines: their ends, and tabs, stay."""
    return "".join(letter if letter in "\n\t" else _shown(letter) for letter in text)


def _shown(letter: str) -> str:
    steers = unicodedata.category(letter) in HIDDEN or letter in TURNING
    return letter.encode("unicode_escape").decode("ascii") if steers else letter
