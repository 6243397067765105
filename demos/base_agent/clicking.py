"""Families of page instructions that need only clicks."""

from __future__ import annotations

from demos.base_agent.screens import (
    VERBS,
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
    widget,
)
from swarm_ui.observation import Role

_CLICKABLE: tuple[Role, ...] = (
    "button", "button", "link", "link", "item", "icon", "heading", "tab", "radio", "checkbox",
    "cell", "text", "shape",
)  # fmt: skip


def labelled(words: WordSampler) -> Screen:
    """A page with the instruction to click one labelled element."""
    rng = words.rng
    role: Role = rng.choice(_CLICKABLE)
    target = widget(role, words.phrase())
    near: tuple[Role, ...] = (role, role, role, "text", "button", "link", "field", "icon", "label")
    others = distractors(words, rng.randint(1, 10), near)
    if rng.random() < 0.15:  # labels that differ only in a number
        stem, count = words.word(), rng.randint(2, 5)
        mark = rng.choice(("", "#"))
        row = [widget(role, f"{stem} {mark}{i + 1}") for i in range(count)]
        target = rng.choice(row)
        others = [d for d in row if d is not target] + distractors(words, rng.randint(0, 4))
    name, verb, label = role_name(rng, role), rng.choice(VERBS), words.quoted(target.label)
    goal = words.one_of(
        f"{verb} the {label} {name}.",
        f"{verb} the {name} {label}.",
        f"{verb} {label}",
        f"{verb} {name} {target.label}.",
        f"{verb} {label} {words.word()} the {words.word()}.",
        f"{verb} the {name} labeled {label}.",
        f"{words.word()} {words.word()} the {words.word()}. {verb} the {name} or "
        f'{words.word()} named "{target.label}".',
        f'{words.word()} the {words.word()} by {verb.lower()} the "{target.label}".',
    )
    return Screen(goal, interleave(rng, [target], others), [Step(target)])


def of_kind(words: WordSampler) -> Screen:
    """A page with the instruction to click the only element of a kind."""
    rng = words.rng
    role: Role = rng.choice(
        ("button", "link", "icon", "field", "area", "radio", "checkbox", "field", "shape", "tab")
    )
    target = widget(role, "" if rng.random() < 0.4 else words.phrase())
    others = [d for d in distractors(words, rng.randint(0, 8)) if d.role != role]
    name = role_name(rng, role)
    goal = words.one_of(
        f'{rng.choice(VERBS)} a "{name}" {words.word()}.',
        f"{rng.choice(VERBS)} the {name}.",
        f"{rng.choice(VERBS)} a {name}",
        f"Focus into the {name}.",
        f"{words.word()} the {name}.",
    )
    return Screen(goal, interleave(rng, [target], others), [Step(target)])


def nth(words: WordSampler) -> Screen:
    """A page with the instruction to act on the n-th element of a kind."""
    rng = words.rng
    role: Role = rng.choice(("field", "button", "link", "checkbox", "radio", "item", "area", "tab"))
    count = rng.randint(2, 5)
    at = rng.randrange(count)
    same = words.word() if rng.random() < 0.5 else ""
    unnamed = role in ("field", "area", "checkbox", "radio")
    row = [widget(role, same if unnamed else words.phrase()) for _ in range(count)]
    others = [d for d in distractors(words, rng.randint(0, 4)) if d.role != role]
    name, ordinal = role_name(rng, role), ("1st", "2nd", "3rd", "4th", "5th")[at]
    widgets = interleave(rng, row, others)
    if role in ("field", "area") and rng.random() < 0.5:
        text = words.word()
        goal = words.one_of(
            f'Enter "{text}" into the {ordinal} {name}.',
            f"Type {words.quoted(text)} in the {ordinal} {words.word()} {name}.",
        )
        return Screen(goal, widgets, [Step(row[at], text)])
    extra = rng.choice(("", f"{words.word()} "))
    goal = f"{rng.choice((*VERBS, 'Focus into'))} the {ordinal} {extra}{name}."
    return Screen(goal, widgets, [Step(row[at])])


def sequence(words: WordSampler) -> Screen:
    """A page with the instruction to click several elements in the given order."""
    rng = words.rng
    role: Role = rng.choice(("button", "link", "item", "icon"))
    row = [widget(role, words.phrase(0.1)) for _ in range(rng.choice((2, 2, 3, 4)))]
    order = rng.sample(row, len(row))
    name, verb = role_name(rng, role), rng.choice(VERBS)
    goal = f"{verb} {name} {order[0].label}"
    for following in order[1:]:
        joint = rng.choice((", then ", ", and then ", " and ", ", ", " then "))
        again = rng.choice((f"{verb.lower()} {name} ", "", f"{verb.lower()} "))
        goal += joint + again + words.quoted(following.label)
    others = distractors(words, rng.randint(0, 4))
    return Screen(f"{goal}.", interleave(rng, row, others), [Step(d) for d in order])


def selection(words: WordSampler) -> Screen:
    """A page with the instruction to check or choose the listed options, then submit."""
    rng = words.rng
    role: Role = rng.choice(("checkbox", "checkbox", "checkbox", "radio", "option", "option"))
    count = rng.randint(2, 12)
    row = [widget(role, words.phrase(0.15)) for _ in range(count)]
    several = role == "checkbox"
    wanted = min(count, rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 8)) if several else 1)
    chosen = rng.sample(row, wanted)
    if rng.random() < 0.25:
        chosen.sort(key=row.index)
    if role == "option":
        row[0].checked = True
    button = submit_button(words)
    names = [d.label for d in chosen]
    listed = ", ".join(names) if rng.random() < 0.8 or wanted < 2 else " and ".join(names)
    if wanted > 1 and rng.random() < 0.3:
        listed = ", ".join(names[:-1]) + " and " + names[-1]
    if not names:
        listed = rng.choice(("nothing", "none"))
    verb = rng.choice(("Select", "Choose", "Check", "Pick", "Mark", words.word()))
    place = rng.choice(("", " from the list", f" from the {words.word()} list", " in the list"))
    goal = f"{verb} {listed}{place} {submit_phrase(rng, button, words)}."
    plan = [Step(d) for d in chosen if not (d.checked and d.role == "option")]
    others = [d for d in distractors(words, rng.randint(0, 3)) if d.role != role]
    return Screen(goal, interleave(rng, [*row, button], others), [*plan, Step(button)])


def similar(words: WordSampler) -> Screen:
    """A page with the instruction to choose the elements that share a word with the instruction."""
    rng = words.rng
    row = [widget("checkbox", words.phrase(0.5)) for _ in range(rng.randint(3, 6))]
    chosen = rng.sample(row, rng.randint(1, min(3, len(row))))
    parts = [rng.choice(d.label.split()) for d in chosen]
    button = submit_button(words)
    goal = f"{rng.choice(('Select', 'Choose', 'Check'))} {', '.join(parts)} "
    goal += f"{submit_phrase(rng, button, words)}."
    others = distractors(words, rng.randint(0, 2), ("text", "link"))
    widgets = interleave(rng, [*row, button], others)
    return Screen(goal, widgets, [*(Step(d) for d in chosen), Step(button)])


def path(words: WordSampler) -> Screen:
    """A page with the instruction to open a path of nested entries, one level at a time."""
    rng = words.rng
    chain = [words.word() for _ in range(rng.choice((2, 2, 3)))]
    joint = rng.choice((">", ">", " > ", ", then ", "/"))
    role: Role = rng.choice(("item", "item", "link", "button"))
    depth = rng.randrange(len(chain))
    row = [widget(role, words.word()) for _ in range(rng.randint(1, 5))]
    opened = [widget(role, label) for label in chain[: depth + 1]]
    verb = rng.choice(("Select", "Open", "Choose", "Click", "Go to"))
    widgets = rng.sample([*row, *opened], len(row) + len(opened))
    history = [past(Step(entry), widgets) for entry in opened[:-1]]
    return Screen(f"{verb} {joint.join(chain)}", widgets, [Step(opened[-1])], history=history)


def grouped(words: WordSampler) -> Screen:
    """A page with the instruction to click the action that belongs to one of several records."""
    rng = words.rng
    owners = [words.phrase(0.2) for _ in range(rng.randint(2, 6))]
    acts = [words.word() for _ in range(rng.randint(2, 4))]
    role: Role = rng.choice(("icon", "button", "link"))
    head: Role = rng.choice(("text", "item", "heading", "link"))
    at, filler = rng.choice(("@", "", "")), rng.choice((0, 0, 1, 2))
    owner, wanted = rng.randrange(len(owners)), rng.randrange(len(acts))
    widgets, target = [], None
    for i, name in enumerate(owners):
        widgets.append(Widget(head, at + name))
        widgets += [Widget(head, words.sentence(1, 6)) for _ in range(filler)]
        for j, label in enumerate(acts):
            widgets.append(Widget(role, label))
            if (i, j) == (owner, wanted):
                target = widgets[-1]
    who, what, kind = at + owners[owner], acts[wanted], role_name(rng, role)
    verb, press = rng.choice(VERBS), rng.choice(("click", "press"))
    goal = words.one_of(
        f"For the {words.word()} {who}, {verb.lower()} the {words.quoted(what)} {kind}.",
        f"{verb} the {words.quoted(what)} {kind} of {who}.",
        f"Find the {words.word()} by {who} and {press} the {what} {kind} to {words.word()} it.",
        f"Find {who} in the {words.word()} and {press} {what}.",
    )
    return Screen(goal, widgets, [Step(target)])


def expand_and_submit(words: WordSampler) -> Screen:
    """A page with the instruction to open the only section, then press the button."""
    rng = words.rng
    kind: Role = rng.choice(("heading", "tab", "link", "item"))
    label = f"{words.word()} #{rng.randint(1, 9)}" if rng.random() < 0.5 else words.phrase(0.3)
    head, button = Widget(kind, label, checked=False), submit_button(words)
    opened = rng.random() < 0.5
    widgets = [head, button]
    verb, press = rng.choice(("Expand", "Open", "Unfold")), rng.choice(("click", "press", "hit"))
    name = rng.choice((role_name(rng, kind), head.label.split(" #")[0]))
    goal = f"{verb} the {name}{rng.choice((' below', ''))} and {press} {button.label}."
    if not opened:
        return Screen(goal, widgets, [Step(head)])
    head.checked = True
    if rng.random() < 0.7:
        widgets.insert(1, Widget("text", words.sentence(3, 10)))
    return Screen(goal, widgets, [Step(button)], history=[past(Step(head), widgets)])


def reveal(words: WordSampler) -> Screen:
    """A page with the instruction to open sections one after the other until the wanted entry is
    visible."""
    rng = words.rng
    wanted = words.phrase(0.1)
    kind: Role = rng.choice(("link", "heading", "item", "icon", "button", "tab"))
    numbered, stem = rng.random() < 0.5, words.word()
    count = rng.randint(1, 5)
    heads = [Widget(kind, f"{stem} #{i + 1}" if numbered else words.word()) for i in range(count)]
    inner: Role = rng.choice(("link", "item", "item", "button"))
    opened = rng.randint(0, count)
    shown = opened == count or (opened > 0 and rng.random() < 0.5)
    if rng.random() < 0.7:
        keeps = rng.random() < 0.3  # several sections stay open
        for i, head in enumerate(heads):
            head.checked = i < opened if keeps else i == opened - 1
    entries = [Widget(inner, words.phrase(0.1)) for _ in range(rng.randint(0, 6) if opened else 0)]
    target = Widget(inner, wanted)
    if shown:
        entries.insert(rng.randint(0, len(entries)), target)
    if opened and rng.random() < 0.4:
        entries.insert(0, Widget("text", words.sentence(3, 8)))
    widgets = heads[:opened] + entries + heads[opened:] if rng.random() < 0.5 else heads + entries
    place = rng.choice(("tabs", "sections", "menu", "list", "pages", "tree"))
    verb = rng.choice(("Switch between", "Expand", "Navigate through", "Search", words.word()))
    press = rng.choice(("click on", "click", "press", "open"))
    goal = words.one_of(
        f"{verb} the {place} {rng.choice(('', 'below '))}to find and {press} the {inner} "
        f"{words.quoted(wanted)}.",
        f"{words.word()} the {place}. Find and click on the {inner} or {words.word()} named "
        f"{words.quoted(wanted)}.",
        f"{rng.choice(VERBS)} {place} {words.quoted(wanted)}",
    )
    first = 1 if opened and heads[0].checked is not None and rng.random() < 0.5 else 0
    history = [past(Step(head), widgets) for head in heads[first:opened]]
    plan = [Step(target if shown else heads[opened])]
    return Screen(goal, widgets, plan, history=history)
