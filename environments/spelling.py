"""Find words in texts, also in obfuscated spellings.

Texts are compared by their skeletons, without accents, invisible characters and case. Look-alike
letters of other scripts, and digits in place of letters, count as the same letter. Letters may be
separated by other characters and repeated, but a double letter of a word stays double. A word must
be a whole word, unless its script is written without spaces.

Unicode publishes longer lists of look-alikes (UTS 39); this list contains the letters that look
like Latin ones.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ALIKE = """
АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ҮY ԌG ԜW ԚQ ӀI
аa еe ѕs іi јj оo рp сc уy хx һh ԁd ԛq ԝw ґr гr үy ӏl пn тt мm кk вb нh ьb әe өo єe
ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX
αa βb εe ηn ιi κk νv οo ρp τt υu χx γy ωw ςc δd
օo ոn սu ցg հh զq ՏS ՕO ՍU
ᎠD ᎡR ᎢT ᎥI ᎪA ᎬE ᎳW ᎷM ᎻH ᏀG ᏃZ ᏙV ᏚS ᏞL ᏟC ᏢP ᏦK ᏴB
ꓐB ꓑP ꓓD ꓔT ꓗK ꓖG ꓙJ ꓚC ꓜZ ꓝF ꓟM ꓠN ꓡL ꓢS ꓣR ꓦV ꓧH ꓪW ꓫX ꓬY ꓮA ꓰE ꓲI ꓳO ꓴU
ɑa ɩi
"""
_LOOKS: dict[str, str] = dict(re.findall(r"(\S)(\S)", _ALIKE))
"""Letters of other scripts, and the Latin ones they look like."""
_LATIN = re.compile(r"(?:LATIN|INDICATOR SYMBOL) .*\b([A-Z])(?: WITH .*)?$")
_DIGITS = str.maketrans("0123456789@$!|€+", "olzeasbtbgasllet")
_MERGED = (("rn", "m"), ("vv", "w"), ("i", "l"))
"""Letters that look alike, replaced on both sides of a comparison."""
_BREAK = r"[\W\d_]*"
_LETTER = r"[^\W\d_]"
_TURNED = frozenset("\u202d\u202e\u2066\u2067\u2068")
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")


def contains_word(word: str, text: str) -> bool:
    """Whether ``word`` occurs in ``text``, in any spelling.

    A star at the end of ``word`` matches any ending (``"delet*"``). Spaces in ``word`` may be
    missing in ``text``.
    """
    if not any(c.isalpha() for c in word):  # a symbol, such as a waste basket
        return bool(word) and _plain(word) in _plain(text)
    pattern = _pattern(word)
    return any(pattern.search(skeleton) for skeleton in _skeletons(text))


@lru_cache(maxsize=4096)
def _skeletons(text: str) -> tuple[str, ...]:
    """The forms in which words are searched: the text itself, the text with digits read as letters,
    and, if it has characters that turn the direction, both from right to left."""
    readings = [text, text[::-1]] if _TURNED & set(text) else [text]
    letters = [_letters(_parted(reading)) for reading in readings]
    return tuple(dict.fromkeys(_merged(t) for s in letters for t in (s, s.translate(_DIGITS))))


@lru_cache(maxsize=1024)
def _pattern(word: str) -> re.Pattern[str]:
    goes_on = word.endswith("*")
    letters = [c for c in _merged(_letters(word.rstrip("*"))) if c.isalpha()]
    # Only the last of equal letters repeats, and never gives back: no text takes quadratic time.
    body = _BREAK.join(
        re.escape(c) if c == following else f"{re.escape(c)}++"
        for c, following in zip(letters, [*letters[1:], ""], strict=True)
    )
    if any(unicodedata.name(c, "").startswith(_SPACELESS) for c in letters):
        return re.compile(f"(?<!{re.escape(letters[0])}){body}")
    return re.compile(f"(?<!{_LETTER}){body}" + ("" if goes_on else f"(?!{_LETTER})"))


def _parted(text: str) -> str:
    """The text with spaces between the words of ``payNow``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)


def _letters(text: str) -> str:
    out: list[str] = []
    for char in unicodedata.normalize("NFKD", text):
        kind = unicodedata.category(char)
        if kind in ("Mn", "Me", "Cf"):
            continue
        out.append(char if char < "\x80" else _LOOKS.get(char) or _named(char))
    return "".join(out).casefold()


def _named(char: str) -> str:
    """The Latin letter in the Unicode name of a character; otherwise the character."""
    match = _LATIN.search(unicodedata.name(char, ""))
    return match[1] if match else char


def _merged(text: str) -> str:
    for pair, letter in _MERGED:
        text = text.replace(pair, letter)
    return text


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c not in "\ufe0e\ufe0f")
