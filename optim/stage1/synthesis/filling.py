"""Families of page instructions that need typing."""

from __future__ import annotations

from swarm_ui.observation import Role
from swarm_ui.optim.stage1.synthesis.pages import and_submit, clutter, name_of, submit
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import Draft, Move, Scene, interleave, past

_NO_FIELDS: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "checkbox",
)  # fmt: skip


def one_field(bag: Bag) -> Scene:
    """Type a text into the field, then submit."""
    rng = bag.rng
    text = " ".join(bag.word() for _ in range(rng.choice((1, 1, 1, 2, 3))))
    if rng.random() < 0.15:
        text = bag.number()
    role: Role = "field" if rng.random() < 0.85 else "area"
    field = Draft(role, "" if rng.random() < 0.5 else bag.phrase(), value="")
    button, name = submit(bag), name_of(rng, role)
    where = f"the {name}"
    if field.label:
        where = rng.choice(
            (where, f"the {field.label} {name}", f'the {name} labeled "{field.label}"')
        )
    press, quoted = and_submit(rng, button, bag), bag.quoted(text)
    goal = rng.choice(
        (
            f"Enter {quoted} into {where} {press}.",
            f"Type {quoted} in {where}, {press}.",
            f"{bag.word()} {where} to enter {quoted} {press}.",
            f"Enter {text} as the {bag.word()} {press}.",
            f"Write {quoted} into {where} {press} {bag.word()} {bag.word()}.",
        )
    )
    before = [Draft("label", bag.phrase())] if rng.random() < 0.3 else []
    drafts = interleave(rng, [*before, field, button], clutter(bag, rng.randint(0, 5), _NO_FIELDS))
    return Scene(goal, drafts, [Move(field, text), Move(button)])


def several_fields(bag: Bag) -> Scene:
    """Fill two or three named fields, then submit."""
    rng = bag.rng
    count = rng.choice((2, 2, 3))
    names = [bag.phrase(0.15) for _ in range(count)]
    texts = [bag.number() if rng.random() < 0.15 else bag.word() for _ in range(count)]
    button = submit(bag)
    fields: list[Draft] = []
    core: list[Draft] = []
    attached = rng.random() < 0.6
    for i in rng.sample(range(count), count) if rng.random() < 0.5 else range(count):
        caption = Draft(rng.choice(("label", "text", "cell")), names[i] + rng.choice(("", ":")))
        if not attached or rng.random() < 0.4:
            core.append(caption)
        core.append(Draft("field", names[i] if attached else "", value=""))
        fields.append(core[-1])
    by_name = {}
    order = [d for d in core if d.role == "field"]
    for field, i in zip(order, _placed(core, names), strict=True):
        by_name[i] = field
    parts = _assignments(bag, names, texts)
    verb = rng.choice(("Enter", "Type", "Fill", "Put", "Search for", bag.word()))
    joint = rng.choice((" and ", ", ", " "))
    tail = rng.choice((" into the text fields", "", " into the form"))
    goal = f"{verb} {joint.join(parts)}{tail} and {and_submit(rng, button, bag)}."
    drafts = _around(bag, [*core, button])
    plan = [Move(by_name[i], texts[i]) for i in range(count)]
    return Scene(goal, drafts, [*plan, Move(button)])


def _placed(core: list[Draft], names: list[str]) -> list[int]:
    """Which name each field stands for, in screen order."""
    out, caption = [], ""
    for draft in core:
        if draft.role == "field":
            out.append(names.index(draft.label or caption))
        else:
            caption = draft.label.rstrip(":")
    return out


def _assignments(bag: Bag, names: list[str], texts: list[str]) -> list[str]:
    """How an instruction pairs names and texts: one way throughout, or it would be a riddle."""
    pairs = list(zip(names, texts, strict=True))
    if bag.rng.random() < 0.6:
        pairs = [(name, f'"{text}"') for name, text in pairs]
    way = bag.rng.choices(range(6), (4, 2, 2, 1, 1, 1))[0]
    if way == 0:
        return [f"the {name} {text}" for name, text in pairs]
    if way == 1:
        return [f"{text} as {name}" for name, text in pairs]
    if way == 2:
        return [f"{name} {text}" for name, text in pairs]
    if way == 3:
        return [f"{name}: {text}" for name, text in pairs]
    if way == 4:
        return [f"{text} {bag.word()} {name}" for name, text in pairs]
    return [f"{bag.word()} {name} {text}" for name, text in pairs]


def same_text(bag: Bag) -> Scene:
    """Type the same text into every field, then submit."""
    rng = bag.rng
    count, text, stem = rng.choice((2, 2, 3)), bag.word(), bag.word()
    labels = [stem] + [f"{bag.word()} {stem}" for _ in range(count - 1)]
    fields = [Draft("field", label if rng.random() < 0.8 else "", value="") for label in labels]
    button = submit(bag)
    every, press = ("both" if count == 2 else "all"), and_submit(rng, button, bag)
    goal = rng.choice(
        (
            f'Enter the {stem} "{text}" into {every} text fields {press}.',
            f'Type "{text}" into {every} {name_of(rng, "field")}s {press}.',
        )
    )
    plan = [Move(field, text) for field in fields]
    return Scene(goal, _around(bag, [*fields, button]), [*plan, Move(button)])


def look_up(bag: Bag) -> Scene:
    """Type the value that stands beside a name into the field."""
    rng = bag.rng
    rows = rng.randint(2, 6)
    names = [bag.phrase(0.2) for _ in range(rows)]
    values = [bag.number() if rng.random() < 0.2 else bag.word() for _ in range(rows)]
    at = rng.randrange(rows)
    role: Role = rng.choice(("cell", "cell", "text", "item"))
    colon = rng.choice(("", ":"))
    table = [Draft(role, t) for n, v in zip(names, values, strict=True) for t in (n + colon, v)]
    field = Draft("field", "" if rng.random() < 0.6 else bag.word(), value="")
    button = submit(bag)
    press = and_submit(rng, button, bag)
    goal = rng.choice(
        (
            f"Enter the value of {bag.quoted(names[at])} into the text field {press}.",
            f"Type the {names[at]} {bag.word()} into the {name_of(rng, 'field')} {press}.",
            f"Enter the {bag.word()} of {names[at]} into the {name_of(rng, 'field')} {press}.",
        )
    )
    return Scene(goal, [*table, field, button], [Move(field, values[at]), Move(button)])


def look_up_each(bag: Bag) -> Scene:
    """Fill every field with the value that stands beside its name."""
    rng = bag.rng
    rows = rng.randint(2, 6)
    names = [bag.phrase(0.2) for _ in range(rows)]
    values = [bag.number() if rng.random() < 0.2 else bag.word() for _ in range(rows)]
    colon = rng.choice(("", ":"))
    role: Role = rng.choice(("cell", "cell", "text"))
    table = [Draft(role, t) for n, v in zip(names, values, strict=True) for t in (n, v)]
    asked = rng.sample(range(rows), rng.randint(1, min(3, rows)))
    fields = [Draft("field", names[i] + colon, value="") for i in asked]
    button = submit(bag)
    verb, thing = (
        rng.choice(("Enter", "Fill in", "Type", bag.word())),
        rng.choice(("form", "fields")),
    )
    goal = rng.choice(
        (
            f"{verb} the value that {bag.word()} with each label into the {thing} "
            f"{and_submit(rng, button, bag)}.",
            f"{verb} each {bag.word()} into the {thing} and submit when done.",
        )
    )
    plan = [Move(field, values[i]) for field, i in zip(fields, asked, strict=True)]
    return Scene(goal, [*table, *fields, button], [*plan, Move(button)])


def look_up_click(bag: Bag) -> Scene:
    """Click the value that stands beside a name."""
    rng = bag.rng
    rows = rng.randint(2, 6)
    names, values = [bag.phrase(0.2) for _ in range(rows)], [bag.phrase(0.2) for _ in range(rows)]
    at = rng.randrange(rows)
    role: Role = rng.choice(("link", "item", "button", "icon"))
    table: list[Draft] = []
    for name, value in zip(names, values, strict=True):
        table += [Draft(rng.choice(("label", "text", "cell")), name), Draft(role, value)]
    target = table[2 * at + 1]
    goal = rng.choice(
        (
            f"Find {bag.quoted(names[at])} and click on its {name_of(rng, role)}.",
            f"Click the {name_of(rng, role)} of {names[at]}.",
            f"{bag.word()} {names[at]} in the {bag.word()} and click their {name_of(rng, role)}.",
        )
    )
    return Scene(goal, table, [Move(target)])


def search_then_open(bag: Bag) -> Scene:
    """Type a query, press search, open a result."""
    rng = bag.rng
    query = bag.phrase(0.3)
    field = Draft("field", "" if rng.random() < 0.5 else bag.word(), value="")
    button = submit(bag)
    results = [Draft("link", bag.word()) for _ in range(rng.randint(2, 5))]
    at = rng.randrange(len(results))
    which = ("1st", "2nd", "3rd", "4th", "5th")[at]
    named = rng.random() < 0.5
    found = results[at].label if named else f"the {which} result"
    goal = rng.choice(
        (
            f"Use the {name_of(rng, 'field')} to enter {bag.quoted(query)} and press "
            f'"{button.label}", then find and click {found}.',
            f"Search for {bag.quoted(query)} and click {found}.",
        )
    )
    later = [*results, *([Draft("text", bag.sentence(3, 8))] if rng.random() < 0.5 else [])]
    if rng.random() < 0.5:
        scene = Scene(goal, [field, button], [Move(field, query), Move(button)])
        return scene
    field.value = query
    scene = Scene(goal, [field, button, *later], [Move(results[at])])
    scene.history = [past(move, scene.drafts) for move in (Move(field, query), Move(button))]
    return scene


def _around(bag: Bag, core: list[Draft]) -> list[Draft]:
    """Clutter before or after a form, never between a caption and its field."""
    others = clutter(bag, bag.rng.randint(0, 3), _NO_FIELDS)
    return others + core if bag.rng.random() < 0.5 else core + others
