"""Families of page instructions that are done by clicking."""

from __future__ import annotations

from swarm_ui.observation import Role
from swarm_ui.optim.stage1.synthesis.pages import (
    VERBS,
    and_submit,
    blank,
    clutter,
    name_of,
    submit,
)
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import Draft, Move, Scene, interleave, past

_CLICKABLE: tuple[Role, ...] = (
    "button", "button", "link", "link", "item", "icon", "heading", "tab", "radio", "checkbox",
    "cell", "text", "shape",
)  # fmt: skip


def labelled(bag: Bag) -> Scene:
    """Click the element with this label."""
    rng = bag.rng
    role: Role = rng.choice(_CLICKABLE)
    target = blank(role, bag.phrase())
    near: tuple[Role, ...] = (role, role, role, "text", "button", "link", "field", "icon", "label")
    others = clutter(bag, rng.randint(1, 10), near)
    if rng.random() < 0.15:  # a row of labels that differ in a number only
        stem, count = bag.word(), rng.randint(2, 5)
        mark = rng.choice(("", "#"))
        row = [blank(role, f"{stem} {mark}{i + 1}") for i in range(count)]
        target = rng.choice(row)
        others = [d for d in row if d is not target] + clutter(bag, rng.randint(0, 4))
    name, verb, label = name_of(rng, role), rng.choice(VERBS), bag.quoted(target.label)
    goal = rng.choice(
        (
            f"{verb} the {label} {name}.",
            f"{verb} the {name} {label}.",
            f"{verb} {label}",
            f"{verb} {name} {target.label}.",
            f"{verb} {label} {bag.word()} the {bag.word()}.",
            f"{verb} the {name} labeled {label}.",
            f"{bag.word()} {bag.word()} the {bag.word()}. {verb} the {name} or {bag.word()} "
            f'named "{target.label}".',
            f'{bag.word()} the {bag.word()} by {verb.lower()} the "{target.label}".',
        )
    )
    return Scene(goal, interleave(rng, [target], others), [Move(target)])


def of_kind(bag: Bag) -> Scene:
    """Click the only element of a kind."""
    rng = bag.rng
    role: Role = rng.choice(
        ("button", "link", "icon", "field", "area", "radio", "checkbox", "field", "shape", "tab")
    )
    target = blank(role, "" if rng.random() < 0.4 else bag.phrase())
    others = [d for d in clutter(bag, rng.randint(0, 8)) if d.role != role]
    name = name_of(rng, role)
    goal = rng.choice(
        (
            f'{rng.choice(VERBS)} a "{name}" {bag.word()}.',
            f"{rng.choice(VERBS)} the {name}.",
            f"{rng.choice(VERBS)} a {name}",
            f"Focus into the {name}.",
            f"{bag.word()} the {name}.",
        )
    )
    return Scene(goal, interleave(rng, [target], others), [Move(target)])


def nth(bag: Bag) -> Scene:
    """Act on the n-th element of a kind."""
    rng = bag.rng
    role: Role = rng.choice(("field", "button", "link", "checkbox", "radio", "item", "area", "tab"))
    count = rng.randint(2, 5)
    at = rng.randrange(count)
    same = bag.word() if rng.random() < 0.5 else ""
    unnamed = role in ("field", "area", "checkbox", "radio")
    row = [blank(role, same if unnamed else bag.phrase()) for _ in range(count)]
    others = [d for d in clutter(bag, rng.randint(0, 4)) if d.role != role]
    name, ordinal = name_of(rng, role), ("1st", "2nd", "3rd", "4th", "5th")[at]
    drafts = interleave(rng, row, others)
    if role in ("field", "area") and rng.random() < 0.5:
        text = bag.word()
        goal = rng.choice(
            (
                f'Enter "{text}" into the {ordinal} {name}.',
                f"Type {bag.quoted(text)} in the {ordinal} {bag.word()} {name}.",
            )
        )
        return Scene(goal, drafts, [Move(row[at], text)])
    extra = rng.choice(("", f"{bag.word()} "))
    goal = f"{rng.choice((*VERBS, 'Focus into'))} the {ordinal} {extra}{name}."
    return Scene(goal, drafts, [Move(row[at])])


def sequence(bag: Bag) -> Scene:
    """Click several elements in the order of the instruction."""
    rng = bag.rng
    role: Role = rng.choice(("button", "link", "item", "icon"))
    row = [blank(role, bag.phrase(0.1)) for _ in range(rng.choice((2, 2, 3, 4)))]
    order = rng.sample(row, len(row))
    name, verb = name_of(rng, role), rng.choice(VERBS)
    goal = f"{verb} {name} {order[0].label}"
    for draft in order[1:]:
        joint = rng.choice((", then ", ", and then ", " and ", ", ", " then "))
        again = rng.choice((f"{verb.lower()} {name} ", "", f"{verb.lower()} "))
        goal += joint + again + bag.quoted(draft.label)
    others = clutter(bag, rng.randint(0, 4))
    return Scene(f"{goal}.", interleave(rng, row, others), [Move(d) for d in order])


def selection(bag: Bag) -> Scene:
    """Check or choose what is listed, then submit."""
    rng = bag.rng
    role: Role = rng.choice(("checkbox", "checkbox", "checkbox", "radio", "option", "option"))
    count = rng.randint(2, 12)
    row = [blank(role, bag.phrase(0.15)) for _ in range(count)]
    several = role == "checkbox"
    wanted = min(count, rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 8)) if several else 1)
    chosen = rng.sample(row, wanted)
    if rng.random() < 0.25:
        chosen.sort(key=row.index)
    if role == "option":
        row[0].checked = True
    button = submit(bag)
    names = [draft.label for draft in chosen]
    listed = ", ".join(names) if rng.random() < 0.8 or wanted < 2 else " and ".join(names)
    if wanted > 1 and rng.random() < 0.3:
        listed = ", ".join(names[:-1]) + " and " + names[-1]
    if not names:
        listed = rng.choice(("nothing", "none"))
    verb = rng.choice(("Select", "Choose", "Check", "Pick", "Mark", bag.word()))
    place = rng.choice(("", " from the list", f" from the {bag.word()} list", " in the list"))
    goal = f"{verb} {listed}{place} {and_submit(rng, button, bag)}."
    plan = [Move(d) for d in chosen if not (d.checked and d.role == "option")]
    others = [d for d in clutter(bag, rng.randint(0, 3)) if d.role != role]
    return Scene(goal, interleave(rng, [*row, button], others), [*plan, Move(button)])


def similar(bag: Bag) -> Scene:
    """Choose the elements whose label means the instruction's words: a shared stem or part."""
    rng = bag.rng
    row = [blank("checkbox", bag.phrase(0.5)) for _ in range(rng.randint(3, 6))]
    chosen = rng.sample(row, rng.randint(1, min(3, len(row))))
    parts = [rng.choice(d.label.split()) for d in chosen]
    button = submit(bag)
    goal = f"{rng.choice(('Select', 'Choose', 'Check'))} {', '.join(parts)} "
    goal += f"{and_submit(rng, button, bag)}."
    drafts = interleave(rng, [*row, button], clutter(bag, rng.randint(0, 2), ("text", "link")))
    return Scene(goal, drafts, [*(Move(d) for d in chosen), Move(button)])


def path(bag: Bag) -> Scene:
    """Open a chain of nested entries, one level at a time."""
    rng = bag.rng
    chain = [bag.word() for _ in range(rng.choice((2, 2, 3)))]
    joint = rng.choice((">", ">", " > ", ", then ", "/"))
    role: Role = rng.choice(("item", "item", "link", "button"))
    depth = rng.randrange(len(chain))
    row = [blank(role, bag.word()) for _ in range(rng.randint(1, 5))]
    opened = [blank(role, label) for label in chain[: depth + 1]]
    verb = rng.choice(("Select", "Open", "Choose", "Click", "Go to"))
    drafts = rng.sample([*row, *opened], len(row) + len(opened))
    scene = Scene(f"{verb} {joint.join(chain)}", drafts, [Move(opened[-1])])
    scene.history = [past(Move(draft), drafts) for draft in opened[:-1]]
    return scene


def grouped(bag: Bag) -> Scene:
    """Click the action that belongs to one of several records."""
    rng = bag.rng
    owners = [bag.phrase(0.2) for _ in range(rng.randint(2, 6))]
    acts = [bag.word() for _ in range(rng.randint(2, 4))]
    role: Role = rng.choice(("icon", "button", "link"))
    head: Role = rng.choice(("text", "item", "heading", "link"))
    at, filler = rng.choice(("@", "", "")), rng.choice((0, 0, 1, 2))
    owner, wanted = rng.randrange(len(owners)), rng.randrange(len(acts))
    drafts, target = [], None
    for i, name in enumerate(owners):
        drafts.append(Draft(head, at + name))
        drafts += [Draft(head, bag.sentence(1, 6)) for _ in range(filler)]
        for j, label in enumerate(acts):
            drafts.append(Draft(role, label))
            if (i, j) == (owner, wanted):
                target = drafts[-1]
    who, what, kind = at + owners[owner], acts[wanted], name_of(rng, role)
    verb, press = rng.choice(VERBS), rng.choice(("click", "press"))
    goal = rng.choice(
        (
            f"For the {bag.word()} {who}, {verb.lower()} the {bag.quoted(what)} {kind}.",
            f"{verb} the {bag.quoted(what)} {kind} of {who}.",
            f"Find the {bag.word()} by {who} and {press} the {what} {kind} to {bag.word()} it.",
            f"Find {who} in the {bag.word()} and {press} {what}.",
        )
    )
    return Scene(goal, drafts, [Move(target)])


def expand_and_submit(bag: Bag) -> Scene:
    """Open the one section, then press the button."""
    rng = bag.rng
    kind: Role = rng.choice(("heading", "tab", "link", "item"))
    label = f"{bag.word()} #{rng.randint(1, 9)}" if rng.random() < 0.5 else bag.phrase(0.3)
    head, button = Draft(kind, label, checked=False), submit(bag)
    opened = rng.random() < 0.5
    drafts = [head, button]
    verb, press = rng.choice(("Expand", "Open", "Unfold")), rng.choice(("click", "press", "hit"))
    name = rng.choice((name_of(rng, kind), head.label.split(" #")[0]))
    goal = f"{verb} the {name}{rng.choice((' below', ''))} and {press} {button.label}."
    if not opened:
        return Scene(goal, drafts, [Move(head)])
    head.checked = True
    if rng.random() < 0.7:
        drafts.insert(1, Draft("text", bag.sentence(3, 10)))
    scene = Scene(goal, drafts, [Move(button)])
    scene.history = [past(Move(head), drafts)]
    return scene


def reveal(bag: Bag) -> Scene:
    """Open sections one after the other until the wanted entry shows."""
    rng = bag.rng
    wanted = bag.phrase(0.1)
    kind: Role = rng.choice(("link", "heading", "item", "icon", "button", "tab"))
    numbered, stem = rng.random() < 0.5, bag.word()
    count = rng.randint(1, 5)
    heads = [Draft(kind, f"{stem} #{i + 1}" if numbered else bag.word()) for i in range(count)]
    inner: Role = rng.choice(("link", "item", "item", "button"))
    opened = rng.randint(0, count)
    shown = opened == count or (opened > 0 and rng.random() < 0.5)
    if rng.random() < 0.7:
        keeps = rng.random() < 0.3  # sections that stay open beside each other
        for i, head in enumerate(heads):
            head.checked = i < opened if keeps else i == opened - 1
    entries = [Draft(inner, bag.phrase(0.1)) for _ in range(rng.randint(0, 6) if opened else 0)]
    target = Draft(inner, wanted)
    if shown:
        entries.insert(rng.randint(0, len(entries)), target)
    if opened and rng.random() < 0.4:
        entries.insert(0, Draft("text", bag.sentence(3, 8)))
    drafts = heads[:opened] + entries + heads[opened:] if rng.random() < 0.5 else heads + entries
    place = rng.choice(("tabs", "sections", "menu", "list", "pages", "tree"))
    verb = rng.choice(("Switch between", "Expand", "Navigate through", "Search", bag.word()))
    press = rng.choice(("click on", "click", "press", "open"))
    goal = rng.choice(
        (
            f"{verb} the {place} {rng.choice(('', 'below '))}to find and {press} the {inner} "
            f"{bag.quoted(wanted)}.",
            f"{bag.word()} the {place}. Find and click on the {inner} or {bag.word()} named "
            f"{bag.quoted(wanted)}.",
            f"{rng.choice(VERBS)} {place} {bag.quoted(wanted)}",
        )
    )
    scene = Scene(goal, drafts, [Move(target if shown else heads[opened])])
    first = 1 if opened and heads[0].checked is not None and rng.random() < 0.5 else 0
    scene.history = [past(Move(head), drafts) for head in heads[first:opened]]
    return scene
