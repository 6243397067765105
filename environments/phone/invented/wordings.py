"""The wordings of goals on invented devices: two plain ones a kind, or a grammar of thousands.

A text is a clause, a mention of the app before or after it, and a polite frame. The notation is
that of :mod:`swarm_ui.environments.phone.invented.grammar`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from swarm_ui.environments.phone.invented.grammar import draw

Wordings = Literal["few", "many"]
Slots = Mapping[str, str]
"""Words of the task by placeholder."""

IT = (
    "[[the |]{record} {title}|[the |that |my |]{record} [called|named|labelled|known as] {title}|"
    "{title}|the {title} {record}|{record} {title}]"
)
"""One record; ``@it`` in the wordings below."""
_SET = "[set|change|update|edit|modify|adjust|alter|correct|revise|{edit}]"
_DROP = "[delete|remove|drop|get rid of|throw out|clear|wipe|eliminate|{delete}]"
_MAKE = "[add|create|make|enter|register|set up|put in|insert|store|start|{add_verb}]"
_TELL = "[tell me|give me|find out|look up|report|say|check|read out|let me know|get|name]"
_ON = "[turn on|switch on|enable|activate]"
_OFF = "[turn off|switch off|disable|deactivate]"

_TOGGLE = (
    "[turn|switch|flip] {state} {switch}@for",
    "[turn|switch|flip|put|set] {switch} {state}@for",
    "@flip {switch}@for",
    "[make sure|ensure|see to it] that {switch} is {state}@for",
    "{switch} [should be|must be|has to be|ought to be] {state}@for",
    "[I want|I need|I would like] {switch} {state}@for",
    "[have|get] {switch} [turned |switched |]{state}@for",
    "set [the switch|the toggle|the option] {switch} to {state}@for",
    "change {switch} [to|so that it is] {state}@for",
)
MANY: Mapping[str, tuple[str, ...]] = {
    "create": (
        f"{_MAKE} [a|a new|one more|another] {{record}} [with|that has|having] {{fields}}",
        f"{_MAKE} [a|a new] {{record}} : {{fields}}",
        "new {record} [with|:] {fields}",
        "{add} [with|using|and give it] {fields}",
        "[there should be|I need|I want|we need] [a|a new|another] {record} with {fields}",
        "[write down|note down|fill in] a [new |]{record} [with|whose details are] {fields}",
        "with {fields} [add|create|make] a [new |]{record}",
    ),
    "edit": (
        f"{_SET} the {{field}} of @it to {{value}}",
        f"for @it {_SET} [the |]{{field}} to {{value}}",
        "@it [should have|needs|gets] [the |]{field} {value}",
        "make {value} the [new |]{field} of @it",
        "{edit} @it [and|,] [set|change|put] [its |the |]{field} to {value}",
        "[give|assign] @it the [new |]{field} {value}",
        "replace the [present |old |]{field} of @it [with|by] {value}",
        "@it has [a new|another] {field} : {value}",
        "let the {field} of @it be {value}",
        "the {field} of @it [is now|should be|must be|has to be] {value}",
        "[enter|write|put] {value} [as|for] the {field} of @it",
        "[the wrong {field} is stored for|fix the {field} of] @it , it [is|should be] {value}",
    ),
    "delete": (
        f"{_DROP} @it",
        "@it [can go|should go|must go|is no longer needed|is not needed any more]",
        "[I no longer need|I do not need|we no longer want] @it , {delete} it",
        "[find|look for|open] @it and [delete|remove|{delete}] it",
        "take @it [out|away|off the list]",
        "[make sure|see to it] that @it is [gone|deleted|removed]",
        "let @it [disappear|be deleted|be removed]",
    ),
    "toggle": _TOGGLE,
    "setting": _TOGGLE,
    "check": (
        "[check|tick|tick off|check off|cross off|mark] {titles}",
        "mark {titles} as [{switch}|done|complete]",
        "{titles} [is|are] {switch} , [tick|check|mark] [it|them]",
        "set [the check box|the box|the tick] [of|for] {titles}",
        "put a [tick|check mark|mark] [at|on|next to|beside] {titles}",
        "[I have dealt with|I am done with] {titles} , [tick|check|cross] [it|them] off",
        "[make sure|ensure] that {titles} [is|are] [ticked|checked|marked]",
    ),
    "choice": (
        "[set|change|switch|put] [the |]{switch} to {option}",
        "[choose|select|pick|take] {option} [as|for] [the |]{switch}",
        "make {option} the {switch}",
        "[the |]{switch} [should be|must be|has to be] {option}",
        "use {option} [as|for] [the |]{switch}",
        "[I want|I prefer|I would like] {option} [as|for] [the |]{switch}",
        "[the |]{switch} : {option}",
        "let the {switch} be {option}",
    ),
    "read": (
        "?[what is|what's|which is] the {field} of @it",
        "?[which|what] {field} does @it have",
        f"{_TELL} the {{field}} of @it",
        f"{_TELL} [what|which] {{field}} @it has",
        "[I need|I want to know|I wonder about] the {field} of @it",
        "[answer|reply|respond] with the {field} of @it",
        "?do you know the {field} of @it",
        "?[what does @it have|what is stored for @it|what is entered for @it] as {field}",
        "the {field} of @it [, please|is what I need|is what I want to know]",
        "[read|see|open] @it and [tell me|answer with|report] [its|the] {field}",
    ),
    "state": (
        "?is {switch} on or off for @it",
        "?is {switch} [turned |switched |]on for @it , on or off",
        "[tell me|say|find out|check] whether {switch} is on or off for @it",
        "[answer|reply] with on or off : is {switch} [set|on] for @it",
        "?what state is {switch} in for @it , on or off",
    ),
    "show": (
        "[open|show|show me|display|bring up|view|pull up] @it",
        "[find|look for|search for|locate] @it and [open|show|view] it",
        "[go to|navigate to|take me to|jump to] @it",
        "I [want|would like|need] to see @it",
        "[let me see|let me look at] @it",
        "open the [page|screen|details|entry] of @it",
    ),
    "open": (
        "[open|launch|run|bring up|show|show me|load|fire up] [the |]{app}[ app|]",
        "[go|switch|navigate|take me|get] to [the |]{app}[ app|]",
        "I [want|need|would like] to use [the |]{app}[ app|]",
        "[start using|let me use|have a look at] {app}",
    ),
    "copy": (
        f"{_MAKE} [a|a new] {{record2}} [in {{app2}} |]with {{fields}} and with the {{field}} of"
        " @it{from_app} as {field2}",
        "[copy|take|transfer|bring] the {field} of @it{from_app} into the {field2} of a new"
        " {record2}{in_app2} with {fields}",
        "[look up|get|read|find] the {field} of @it{from_app} and [use|enter|write|put] it as"
        " [the |]{field2} of a [new |]{record2}{in_app2} with {fields}",
        "a new {record2}{in_app2} [should have|gets] {fields} and , as {field2} , the {field} of"
        " @it{from_app}",
        "{fields} [is for|belongs to] a new {record2}{in_app2} ; its {field2} is the {field} of"
        " @it{from_app}",
    ),
    "carry": (
        f"{_SET} the {{field2}} of {{record2}} {{title2}}{{in_app2}} to the {{field}} of"
        " @it{from_app}",
        "[copy|transfer|move|carry] the {field} of @it{from_app} [to|into] the {field2} of"
        " {record2} {title2}{in_app2}",
        "[look up|read|get|check] the {field} of @it{from_app} , then [enter|write|put] it as"
        " {field2} of the {record2} {title2}{in_app2}",
        "the {field2} of {record2} {title2}{in_app2} [should be|must be] the same as the {field}"
        " of @it{from_app}",
    ),
}
"""Kind -> its clauses. ``?`` begins a question."""

FEW: Mapping[str, tuple[str, ...]] = {
    "create": ("{add_verb} a {record} with {fields}", "create a {record} with {fields}"),
    "edit": (
        "{edit} the {record} {title} and set {field} to {value}",
        "change the {field} of the {record} {title} to {value}",
    ),
    "delete": ("{delete} the {record} {title}", "{delete} {title}"),
    "toggle": (
        "turn {state} {switch} for the {record} {title}",
        "switch {switch} {state} for {title}",
    ),
    "setting": ("turn {state} {switch}", "switch {switch} {state}"),
    "check": ("check {titles}", "tick off {titles}"),
    "choice": ("set the {switch} to {option}", "change the {switch} to {option}"),
    "read": ("what is the {field} of the {record} {title}", "answer with the {field} of {title}"),
    "state": ("answer with on or off : is {switch} on for {title}",),
    "show": ("open the {record} {title}", "show the {record} {title}"),
    "open": ("open the {app} app", "go to {app}"),
    "copy": (
        "copy the {field} of {record} {title}{from_app} into the {field2} of a new"
        " {record2}{in_app2} with {fields}",
    ),
    "carry": (
        "set the {field2} of the {record2} {title2}{in_app2} to the {field} of {title}{from_app}",
    ),
}
"""Kind -> plain clauses, as on the phone."""

AFTER = " [in|in the|using|with|inside|within|under] {app}[ app|]"
_AFTER_PLAIN = " in {app}"
BEFORE = (
    "[in|in the|using|with|inside] {app}[ app|] [, |]",
    "{app} : ",
    "[open|go to|start|launch|use] [the |]{app}[ app|] [and|, then|to] ",
    "[this is about|this concerns|for] [the |]{app} [app|] : ",
)
"""How a text mentions the app; the third does not go with questions or statements."""
POLITE = (
    "please {}", "{} please", "{} , please", "could you {} ?", "can you {} ?", "would you {} ?",
    "I need you to {}", "I would like you to {}", "your task : {}", "task : {}", "now {}",
    "next , {}", "kindly {}", "hey , {}", "hi , can you {} ?", "{} for me", "{} , thanks",
    "go ahead and {}", "quickly {}", "help me {}",
)  # fmt: skip
_IMPERATIVE = frozenset(
    word
    for line in (
        "set change update edit modify adjust alter correct revise delete remove",
        "drop get throw clear wipe eliminate add create make enter register put insert store start",
        "turn switch flip enable activate disable deactivate check tick cross mark choose select",
        "pick use find look take give assign replace write open show display bring view pull go",
        "navigate jump tell copy transfer read answer search locate ensure see launch run load",
        "fire report carry move",
    )
    for word in line.split()
)
"""First words after which a polite frame reads well."""
_QUOTES = ("{}",) * 6 + ('"{}"', '"{}"', "'{}'", "“{}”")
_JOINTS = (" and ", ", ", " , ", " , and ", "; ", " with ")
_PAIRS = (
    "{n} {v}", "{n} {v}", "{n}: {v}", "{n} = {v}", "{v} as {n}", "{n} set to {v}", "the {n} {v}",
    "{v} for the {n}", "{n} being {v}", "{n} : {v}",
)  # fmt: skip


def phrase(
    kind: str,
    slots: Slots,
    rng: random.Random,
    *,
    wordings: Wordings,
    mention: bool,
    part: bool = False,
    free: Sequence[str] = ("title", "value", "title2"),
) -> str:
    """The text of a goal.

    Args:
        kind: key of :data:`MANY`.
        slots: words by placeholder; ``fields`` and ``titles`` come from :func:`listed`.
        rng: draws the wording.
        wordings: from which set.
        mention: whether the text must name ``slots["app"]``; otherwise it may.
        part: the text is part of a longer one, so it gets no frame.
        free: placeholders that may be put in quotes.
    """
    if wordings == "few":
        text = rng.choice(FEW[kind])
    else:
        clause = _with_state(rng.choice(MANY[kind]).replace("@it", IT), slots)
        text = " ".join(draw(clause, rng).split())
    if "record" in slots and "{record}" not in text:  # nothing else tells where to look
        mention, slots = True, {**slots, "from_app": f" in {slots['app']}"}
    across = "{from_app}" in text or "{app}" in text
    if not across and (mention or rng.random() < 0.5):
        text = _placed(text, rng) if wordings == "many" else text + _AFTER_PLAIN
    if wordings == "few":
        return text.format_map(slots)
    quote = rng.choice(_QUOTES)
    quoted = {name: quote.format(slots[name]) for name in free if name in slots}
    if not part:
        text = _framed(text, rng)
    text = text.removeprefix("?").format_map({**slots, **quoted})
    return text if part else finish(text, rng)


def _framed(text: str, rng: random.Random) -> str:
    """The text in a polite frame, or with a question mark."""
    if text.startswith("?"):
        return f"{text} ?" if rng.random() < 0.6 else text
    return rng.choice(POLITE).replace("{}", text) if _command(text) and rng.random() < 0.4 else text


def _with_state(clause: str, slots: Slots) -> str:
    """The clause with ``@flip`` and ``@for`` replaced."""
    whom = f" [for|of|on] {IT}" if "title" in slots else ""
    return clause.replace("@flip", _ON if slots.get("state") == "on" else _OFF).replace(
        "@for", whom
    )


def _command(text: str) -> bool:
    """Whether a text begins with an imperative."""
    first = text.split(" ", 1)[0]
    return first in _IMPERATIVE or first in ("{edit}", "{delete}", "{add}", "{add_verb}")


def _placed(text: str, rng: random.Random) -> str:
    """The text with a mention of the app."""
    if rng.random() < 0.55:
        return text + draw(AFTER, rng)
    mark, text = ("?", text[1:]) if text.startswith("?") else ("", text)
    usable = BEFORE if _command(text) else (BEFORE[0], BEFORE[1], BEFORE[3])
    return mark + draw(rng.choice(usable), rng) + text


def finish(text: str, rng: random.Random) -> str:
    """The text with regular spaces, and sometimes with a capital and a full stop."""
    text = " ".join(text.split())
    if rng.random() < 0.5:
        text = text.replace(" ,", ",").replace(" ?", "?").replace(" :", ":").replace(" ;", ";")
    if rng.random() < 0.4:
        text = text[:1].upper() + text[1:]
    if text[-1:] not in "?." and rng.random() < 0.25:
        text += "."
    return text


def listed(
    pairs: Mapping[str, str], rng: random.Random, *, wordings: Wordings, free: Sequence[str] = ()
) -> str:
    """Fields and their values as words, in any order.

    Args:
        pairs: value by name of the field.
        rng: draws the form and the order.
        wordings: with ``"few"`` the order is that of ``pairs``.
        free: fields whose values may be put in quotes.
    """
    if wordings == "few":
        return " and ".join(f"{name} {value}" for name, value in pairs.items())
    names = rng.sample(list(pairs), len(pairs))
    form, joint, quote = rng.choice(_PAIRS), rng.choice(_JOINTS), rng.choice(_QUOTES)
    values = {n: quote.format(pairs[n]) if n in free else pairs[n] for n in names}
    return joint.join(form.format(n=name, v=values[name]) for name in names)


def several(titles: Sequence[str], rng: random.Random, *, wordings: Wordings) -> str:
    """Titles as words."""
    if wordings == "few":
        return " and ".join(titles)
    quote = rng.choice(_QUOTES)
    quoted = [quote.format(title) for title in titles]
    joint = rng.choice((" and ", " as well as ", " , also ", " and also ", " , then ", ", "))
    return joint.join(quoted)


def both(first: str, second: str, rng: random.Random, *, wordings: Wordings) -> str:
    """Two goals in one text."""
    if wordings == "few":
        return f"{first} and {second}"
    joint = rng.choice(
        (" and ", " , and ", " , then ", " . Then ", " and then ", " . After that ", " ; also ",
         " . Also ", " , afterwards ", " ; ", " . Next ")
    )  # fmt: skip
    head = "two things : " if rng.random() < 0.1 else ""
    text = f"{head}{first}{joint}{second}"
    return finish(_framed(text, rng), rng)
