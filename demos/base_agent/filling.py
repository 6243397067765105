"""Families of page instructions that need typing."""

from __future__ import annotations

from demos.base_agent.screens import (
    Screen,
    Step,
    Widget,
    WordSampler,
    distractors,
    interleave,
    past,
    role_name,
    submit_button,
    submit_phrase,
)
from swarm_ui.observation import Role

_NO_FIELDS: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "checkbox",
)  # fmt: skip


def one_field(words: WordSampler) -> Screen:
    """A page with the instruction to type a text into the only field, then submit."""
    rng = words.rng
    text = " ".join(words.word() for _ in range(rng.choice((1, 1, 1, 2, 3))))
    if rng.random() < 0.15:
        text = words.number()
    role: Role = "field" if rng.random() < 0.85 else "area"
    field = Widget(role, "" if rng.random() < 0.5 else words.phrase(), value="")
    button, name = submit_button(words), role_name(rng, role)
    where = f"the {name}"
    if field.label:
        labelled = f"the {field.label} {name}", f'the {name} labeled "{field.label}"'
        where = rng.choice((where, *labelled))
    press, quoted = submit_phrase(rng, button, words), words.quoted(text)
    goal = words.one_of(
        f"Enter {quoted} into {where} {press}.",
        f"Type {quoted} in {where}, {press}.",
        f"{words.word()} {where} to enter {quoted} {press}.",
        f"Enter {text} as the {words.word()} {press}.",
        f"Write {quoted} into {where} {press} {words.word()} {words.word()}.",
    )
    before = [Widget("label", words.phrase())] if rng.random() < 0.3 else []
    others = distractors(words, rng.randint(0, 5), _NO_FIELDS)
    widgets = interleave(rng, [*before, field, button], others)
    return Screen(goal, widgets, [Step(field, text), Step(button)])


def several_fields(words: WordSampler) -> Screen:
    """A page with the instruction to fill two or three named fields, then submit."""
    rng = words.rng
    count = rng.choice((2, 2, 3))
    names = [words.phrase(0.15) for _ in range(count)]
    texts = [words.number() if rng.random() < 0.15 else words.word() for _ in range(count)]
    button = submit_button(words)
    core: list[Widget] = []
    attached = rng.random() < 0.6
    for i in rng.sample(range(count), count) if rng.random() < 0.5 else range(count):
        caption = Widget(rng.choice(("label", "text", "cell")), names[i] + rng.choice(("", ":")))
        if not attached or rng.random() < 0.4:
            core.append(caption)
        core.append(Widget("field", names[i] if attached else "", value=""))
    order = [d for d in core if d.role == "field"]
    by_name = dict(zip(_name_indices(core, names), order, strict=True))
    parts = _assignments(words, names, texts)
    verb = rng.choice(("Enter", "Type", "Fill", "Put", "Search for", words.word()))
    joint = rng.choice((" and ", ", ", " "))
    tail = rng.choice((" into the text fields", "", " into the form"))
    goal = f"{verb} {joint.join(parts)}{tail} and {submit_phrase(rng, button, words)}."
    widgets = _around(words, [*core, button])
    plan = [Step(by_name[i], texts[i]) for i in range(count)]
    return Screen(goal, widgets, [*plan, Step(button)])


def _name_indices(core: list[Widget], names: list[str]) -> list[int]:
    """Index of the name of each field, in screen order."""
    out, caption = [], ""
    for element in core:
        if element.role == "field":
            out.append(names.index(element.label or caption))
        else:
            caption = element.label.rstrip(":")
    return out


def _assignments(words: WordSampler, names: list[str], texts: list[str]) -> list[str]:
    """Names and texts in the same wording for all pairs, so that the instruction is unambiguous."""
    pairs = list(zip(names, texts, strict=True))
    if words.rng.random() < 0.6:
        pairs = [(name, f'"{text}"') for name, text in pairs]
    templates = ("the {name} {text}", "{text} as {name}", "{name} {text}", "{name}: {text}",
                 "{text} {verb} {name}", "{verb} {name} {text}")  # fmt: skip
    chosen = words.rng.choices(templates, (4, 2, 2, 1, 1, 1))[0]
    with_verb = "{verb}" in chosen
    verbs = (words.word() if with_verb else "" for _ in pairs)
    return [chosen.format(name=n, text=t, verb=v) for (n, t), v in zip(pairs, verbs, strict=True)]


def _table(words: WordSampler) -> tuple[list[str], list[str]]:
    rng, rows = words.rng, words.rng.randint(2, 6)
    names = [words.phrase(0.2) for _ in range(rows)]
    return names, [words.number() if rng.random() < 0.2 else words.word() for _ in range(rows)]


def same_text(words: WordSampler) -> Screen:
    """A page with the instruction to type the same text into every field, then submit."""
    rng = words.rng
    count, text, stem = rng.choice((2, 2, 3)), words.word(), words.word()
    labels = [stem] + [f"{words.word()} {stem}" for _ in range(count - 1)]
    fields = [Widget("field", label if rng.random() < 0.8 else "", value="") for label in labels]
    button = submit_button(words)
    every, press = ("both" if count == 2 else "all"), submit_phrase(rng, button, words)
    goal = words.one_of(
        f'Enter the {stem} "{text}" into {every} text fields {press}.',
        f'Type "{text}" into {every} {role_name(rng, "field")}s {press}.',
    )
    plan = [Step(field, text) for field in fields]
    return Screen(goal, _around(words, [*fields, button]), [*plan, Step(button)])


def look_up(words: WordSampler) -> Screen:
    """A page with the instruction to type the value next to a name into the field."""
    rng = words.rng
    names, values = _table(words)
    at = rng.randrange(len(names))
    role: Role = rng.choice(("cell", "cell", "text", "item"))
    colon = rng.choice(("", ":"))
    table = [Widget(role, t) for n, v in zip(names, values, strict=True) for t in (n + colon, v)]
    field = Widget("field", "" if rng.random() < 0.6 else words.word(), value="")
    button = submit_button(words)
    press = submit_phrase(rng, button, words)
    goal = words.one_of(
        f"Enter the value of {words.quoted(names[at])} into the text field {press}.",
        f"Type the {names[at]} {words.word()} into the {role_name(rng, 'field')} {press}.",
        f"Enter the {words.word()} of {names[at]} into the {role_name(rng, 'field')} {press}.",
    )
    return Screen(goal, [*table, field, button], [Step(field, values[at]), Step(button)])


def look_up_each(words: WordSampler) -> Screen:
    """A page with the instruction to fill every field with the value next to its name."""
    rng = words.rng
    names, values = _table(words)
    colon = rng.choice(("", ":"))
    role: Role = rng.choice(("cell", "cell", "text"))
    table = [Widget(role, t) for n, v in zip(names, values, strict=True) for t in (n, v)]
    asked = rng.sample(range(len(names)), rng.randint(1, min(3, len(names))))
    fields = [Widget("field", names[i] + colon, value="") for i in asked]
    button = submit_button(words)
    verb = words.one_of("Enter", "Fill in", "Type", words.word())
    thing = words.one_of("form", "fields")
    goal = words.one_of(
        f"{verb} the value that {words.word()} with each label into the {thing} "
        f"{submit_phrase(rng, button, words)}.",
        f"{verb} each {words.word()} into the {thing} and submit when done.",
    )
    plan = [Step(field, values[i]) for field, i in zip(fields, asked, strict=True)]
    return Screen(goal, [*table, *fields, button], [*plan, Step(button)])


def look_up_click(words: WordSampler) -> Screen:
    """A page with the instruction to click the value next to a name."""
    rng = words.rng
    rows = rng.randint(2, 6)
    names, values = ([words.phrase(0.2) for _ in range(rows)] for _ in range(2))
    at = rng.randrange(rows)
    role: Role = rng.choice(("link", "item", "button", "icon"))
    table: list[Widget] = []
    for name, value in zip(names, values, strict=True):
        table += [Widget(rng.choice(("label", "text", "cell")), name), Widget(role, value)]
    target = table[2 * at + 1]
    goal = words.one_of(
        f"Find {words.quoted(names[at])} and click on its {role_name(rng, role)}.",
        f"Click the {role_name(rng, role)} of {names[at]}.",
        f"{words.word()} {names[at]} in the {words.word()} and click their {role_name(rng, role)}.",
    )
    return Screen(goal, table, [Step(target)])


def search_then_open(words: WordSampler) -> Screen:
    """A page with the instruction to type a query, press search, and open a result."""
    rng = words.rng
    query = words.phrase(0.3)
    field = Widget("field", "" if rng.random() < 0.5 else words.word(), value="")
    button = submit_button(words)
    results = [Widget("link", words.word()) for _ in range(rng.randint(2, 5))]
    at = rng.randrange(len(results))
    which = ("1st", "2nd", "3rd", "4th", "5th")[at]
    named = rng.random() < 0.5
    found = results[at].label if named else f"the {which} result"
    goal = words.one_of(
        f"Use the {role_name(rng, 'field')} to enter {words.quoted(query)} and press "
        f'"{button.label}", then find and click {found}.',
        f"Search for {words.quoted(query)} and click {found}.",
    )
    later = [*results, *([Widget("text", words.sentence(3, 8))] if rng.random() < 0.5 else [])]
    if rng.random() < 0.5:
        return Screen(goal, [field, button], [Step(field, query), Step(button)])
    field.value = query
    widgets = [field, button, *later]
    history = [past(step, widgets) for step in (Step(field, query), Step(button))]
    return Screen(goal, widgets, [Step(results[at])], history=history)


def _around(words: WordSampler, core: list[Widget]) -> list[Widget]:
    """Distractors before or after a form, never between a caption and its field."""
    others = distractors(words, words.rng.randint(0, 3), _NO_FIELDS)
    return others + core if words.rng.random() < 0.5 else core + others
