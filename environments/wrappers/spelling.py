"""Find words in texts, in any spelling.

Texts are compared without accents, invisible characters and case, and look-alike letters of other
scripts count as the same letter. A word must be a whole word, unless its script is written without
spaces.

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
_LETTER = r"[^\W\d_]"
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")


def contains_word(word: str, text: str) -> bool:
    """Whether ``word`` occurs in ``text``, in any spelling.

    A star at the end of ``word`` matches any ending (``"delet*"``). Spaces in ``word`` may be
    missing in ``text``, or be other characters than letters and digits.
    """
    if not any(c.isalpha() for c in word):  # a symbol, such as a waste basket
        return bool(word) and _plain(word) in _plain(text)
    return _pattern(word).search(_letters(text)) is not None


@lru_cache(maxsize=1024)
def _pattern(word: str) -> re.Pattern[str]:
    parts = map(re.escape, re.findall(r"[^\W_]+", _letters(word)))
    body = r"[\W_]*".join(parts)
    if any(unicodedata.name(c, "").startswith(_SPACELESS) for c in word):
        return re.compile(body)
    return re.compile(f"(?<!{_LETTER}){body}" + ("" if word.endswith("*") else f"(?!{_LETTER})"))


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """The text in plain small letters, with spaces between the words of ``payNow``."""
    out: list[str] = []
    for char in unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)):
        if unicodedata.category(char) not in ("Mn", "Me", "Cf"):
            out.append(char if char < "\x80" else _LOOKS.get(char) or _named(char))
    return "".join(out).casefold()


def _named(char: str) -> str:
    """The Latin letter in the Unicode name of a character; otherwise the character."""
    match = _LATIN.search(unicodedata.name(char, ""))
    return match[1] if match else char


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c not in "\ufe0e\ufe0f")
