"""The wordings of goals on invented devices: two plain ones for each kind, or a large grammar.

The devices of the blind set have plain wordings of their own. A text is a clause, a mention of the
app before or after it, and a polite frame. ``clauses.json`` has the clauses, without the name of
the app and without a frame; ``?`` begins a question, and ``@it`` and others stand for its
``parts``.

In the notation, ``[a|b]`` stands for one of its alternatives, which may be empty and may contain
brackets. Placeholders such as ``{title}`` stay as they are.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal

Wordings = Literal["few", "many"]
ClauseSet = Literal["few", "many", "blind"]
"""The wordings of a device: those that were chosen, or those of the blind set."""
Slots = Mapping[str, str]
"""Words of the task by placeholder."""

_READ = json.loads(files(__package__).joinpath("clauses.json").read_text("utf-8"))
_READ["many"]["setting"] = _READ["many"]["toggle"]
CLAUSES: Mapping[ClauseSet, Mapping[str, tuple[str, ...]]] = {
    name: {
        kind: tuple(
            re.sub("@(it|set|drop|make|tell)", lambda part: _READ["parts"][part[1]], clause)
            for clause in clauses
        )
        for kind, clauses in _READ[name].items()
    }
    for name in ("few", "many", "blind")
}
"""Wordings -> kind -> its clauses."""
_AROUND: Mapping[str, Sequence[str]] = _READ["around"]
"""What varies around a clause: phrases ``before`` and ``after`` it that mention the app (the third
of ``before`` does not fit questions or statements); ``polite`` frames, and the ``imperative`` first
words with which a frame reads well; ``quotes``; and forms of fields, titles and pairs of goals."""
_PLAIN = {
    "pairs": "{n} {v}", "joints": " and ", "quotes": "{}", "rests": " with {}", "several": " and ",
    "both": " and ",
}  # fmt: skip


class Voice:
    """Words goals in one set of wordings.

    Args:
        wordings: the set of wordings; only those of ``"many"`` vary.
        rng: draws the wordings.
        part: the texts are parts of longer ones, so they get no frame.
    """

    def __init__(self, wordings: ClauseSet, rng: random.Random, *, part: bool = False) -> None:
        self.wordings, self.rng, self.part = wordings, rng, part
        self.varied = wordings == "many"

    def phrase(
        self,
        kind: str,
        slots: Slots,
        *,
        mention: bool,
        free: Sequence[str] = ("title", "value", "title2", "value2"),
    ) -> str:
        """The text of a goal.

        Args:
            kind: key of :data:`CLAUSES`.
            slots: words by placeholder; ``fields`` and ``titles`` come from :meth:`listed`.
            mention: whether the text must name ``slots["app"]``; otherwise it may.
            free: placeholders that may be put in quotes.
        """
        rng = self.rng
        text = rng.choice(CLAUSES[self.wordings][kind])
        if self.varied:
            text = " ".join(draw(with_state(text, slots), rng).split())
        if "record" in slots and "{record}" not in text:  # nothing else tells where to look
            mention, slots = True, {**slots, "from_app": f" in {slots['app']}"}
        across = "{from_app}" in text or "{app}" in text
        if not across and (mention or rng.random() < 0.5):
            text = _placed(text, rng) if self.varied else f"{text} in {{app}}"
        if not self.varied:
            return text.format_map(slots)
        quote = self.any("quotes")
        quoted = {name: quote.format(slots[name]) for name in free if name in slots}
        if not self.part:
            text = self._framed(text)
        text = text.removeprefix("?").format_map({**slots, **quoted})
        return text if self.part else _finish(text, rng)

    def listed(
        self, pairs: Mapping[str, str], *, free: Sequence[str], alone: Mapping[str, str]
    ) -> str:
        """Fields and their values as text, in random order.

        Args:
            pairs: value by name of the field.
            free: fields whose values may be put in quotes.
            alone: for fields that are recognised by their values, a phrase without the name of the
                field, such as ``"at {}"``. It is sometimes used instead of the name.
        """
        rng, names = self.rng, list(pairs)
        if self.varied:
            names = rng.sample(names, len(names))
        form, joint, quote = map(self.any, ("pairs", "joints", "quotes"))
        values = {n: quote.format(pairs[n]) if n in free else pairs[n] for n in names}
        texts = {name: form.format(n=name, v=values[name]) for name in names}
        for name, bare in alone.items() if self.varied else ():
            if name in texts and rng.random() < 0.3:
                texts[name] = bare.format(values[name])
        return joint.join(texts.values())

    def any(self, name: str) -> str:
        """One of the forms of this name; always the plain one if the wordings do not vary."""
        return self.rng.choice(_AROUND[name]) if self.varied else _PLAIN[name]

    def rest(self, fields: str) -> str:
        """The text after the title of a new record: its other fields, if there are any."""
        return self.any("rests").replace("{}", fields) if fields else ""

    def several(self, titles: Sequence[str]) -> str:
        """Several titles as one phrase."""
        quote = self.any("quotes")
        return self.any("several").join(quote.format(title) for title in titles)

    def both(self, first: str, second: str) -> str:
        """The text of two goals."""
        joint = self.any("both")
        if not self.varied:
            return f"{first}{joint}{second}"
        head = "two things : " if self.rng.random() < 0.1 else ""
        return _finish(self._framed(f"{head}{first}{joint}{second}"), self.rng)

    def _framed(self, text: str) -> str:
        """The text in a polite frame, or with a question mark."""
        if text.startswith("?"):
            return f"{text} ?" if self.rng.random() < 0.6 else text
        framed = _command(text) and self.rng.random() < 0.4
        return self.any("polite").replace("{}", text) if framed else text


def with_state(clause: str, slots: Slots) -> str:
    """The clause with ``@flip`` and ``@for`` replaced."""
    whom = f" [for|of|on] {_READ['parts']['it']}" if "title" in slots else ""
    flip = "[switch on|enable|activate]"
    if slots.get("state") != "on":
        flip = "[switch off|disable|deactivate]"
    return clause.replace("@flip", flip).replace("@for", whom)


def _command(text: str) -> bool:
    """Whether a text begins with an imperative."""
    first = text.split(" ", 1)[0]
    return first in _AROUND["imperative"] or first in ("{edit}", "{delete}", "{add}", "{add_verb}")


def _placed(text: str, rng: random.Random) -> str:
    """The text with a mention of the app."""
    if rng.random() < 0.55:
        return text + draw(_AROUND["after"][0], rng)
    mark, text = ("?", text[1:]) if text.startswith("?") else ("", text)
    before = _AROUND["before"]
    usable = before if _command(text) else (*before[:2], *before[3:])
    return mark + draw(rng.choice(usable), rng) + text


def _finish(text: str, rng: random.Random) -> str:
    """The text with single spaces; sometimes with a capital at the start and a full stop at the
    end."""
    text = " ".join(text.split())
    if rng.random() < 0.5:
        text = text.replace(" ,", ",").replace(" ?", "?").replace(" :", ":").replace(" ;", ";")
    if rng.random() < 0.4:
        text = text[:1].upper() + text[1:]
    if text[-1:] not in "?." and rng.random() < 0.25:
        text += "."
    return text


# -- the notation ----------------------------------------------------------------------------------


def draw(wording: str, rng: random.Random) -> str:
    """A random text; every choice is uniform over its alternatives."""
    return "".join(_drawn(_parse(wording), rng))


_Parts = list["str | list[_Parts]"]
"""Texts, and choices as lists of their alternatives, each with parts of its own."""


def _drawn(parts: _Parts, rng: random.Random) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            yield from _drawn(part[int(rng.random() * len(part))], rng)


@lru_cache(maxsize=4096)
def _parse(wording: str) -> _Parts:
    open_choices: list[list[_Parts]] = [[[]]]
    for token in re.split(r"([\[|\]])", wording):
        if token == "[":
            open_choices.append([[]])
        elif token == "|":
            open_choices[-1].append([])
        elif token == "]":
            done = open_choices.pop()
            open_choices[-1][-1].append(done)
        elif token:
            open_choices[-1][-1].append(token)
    return open_choices[0][0]
