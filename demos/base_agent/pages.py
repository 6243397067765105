"""Families of page instructions: pages of random words, an instruction, and its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from demos.base_agent.screens import VERBS, Screen, Step, Widget, Words, past, widget
from swarm_ui.observation import Role

_CLICKABLE: tuple[Role, ...] = (
    "button", "button", "link", "link", "item", "icon", "heading", "tab", "radio", "checkbox",
    "cell", "text", "shape",
)  # fmt: skip
_UNIQUE: tuple[Role, ...] = (
    "button", "link", "icon", "field", "area", "radio", "checkbox", "field", "shape", "tab",
)  # fmt: skip
_NO_FIELDS: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "checkbox",
)  # fmt: skip
_NTH = ("1st", "2nd", "3rd", "4th", "5th")


def labelled(w: Words) -> Screen:
    """Click one labelled element."""
    role: Role = w.choice(_CLICKABLE)
    target = widget(role, w.phrase())
    others = w.others(10, (role, role, role, "text", "button", "link", "field", "icon", "label"), 1)
    if w.chance(0.15):  # labels that differ only in a number
        stem, mark = w.word(), w.choice(("", "#"))
        row = [widget(role, f"{stem} {mark}{i + 1}") for i in range(w.randint(2, 5))]
        target = w.choice(row)
        others = [d for d in row if d is not target] + w.others(4)
    goal = w.say(
        "{verb} the {q:label} {name}.", "{verb} the {name} {q:label}.", "{verb} {q:label}",
        "{verb} {name} {label}.", "{verb} {q:label} {word} the {word}.",
        "{verb} the {name} labeled {q:label}.",
        '{word} {word} the {word}. {verb} the {name} or {word} named "{label}".',
        '{word} the {word} by [clicking|pressing|opening] the "{label}".',
        label=target.label, name=w.named(role),
    )  # fmt: skip
    return Screen(goal, w.mixed([target], others), [Step(target)])


def of_kind(w: Words) -> Screen:
    """Click the only element of a kind."""
    role: Role = w.choice(_UNIQUE)
    target = widget(role, "" if w.chance(0.4) else w.phrase())
    goal = w.say('{verb} a "{name}" {word}.', "{verb} the {name}.", "{verb} a {name}",
                 "Focus into the {name}.", "{word} the {name}.", name=w.named(role))  # fmt: skip
    return Screen(goal, w.mixed([target], w.others(8, not_of=role)), [Step(target)])


def nth(w: Words) -> Screen:
    """Act on the n-th element of a kind."""
    role: Role = w.choice(("field", "button", "link", "checkbox", "radio", "item", "area", "tab"))
    same, unnamed = w.choice((w.word(), "")), role in ("field", "area", "checkbox", "radio")
    row = [widget(role, same if unnamed else w.phrase()) for _ in range(w.randint(2, 5))]
    at = w.randrange(len(row))
    parts = {"nth": _NTH[at], "name": w.named(role), "text": w.word()}
    widgets = w.mixed(row, w.others(4, not_of=role))
    if role in ("field", "area") and w.chance(0.5):
        goal = w.say('Enter "{text}" into the {nth} {name}.',
                     "Type {q:text} in the {nth} {word} {name}.", **parts)  # fmt: skip
        return Screen(goal, widgets, [Step(row[at], parts["text"])])
    goal = w.say("[{verb}|{verb}|Focus into] the {nth} [|{word} ]{name}.", **parts)
    return Screen(goal, widgets, [Step(row[at])])


def sequence(w: Words) -> Screen:
    """Click several elements in the given order."""
    role: Role = w.choice(("button", "link", "item", "icon"))
    row = [widget(role, w.phrase(0.1)) for _ in range(w.choice((2, 2, 3, 4)))]
    order, name, verb = w.sample(row, len(row)), w.named(role), w.choice(VERBS)
    goal = f"{verb} {name} {order[0].label}"
    for following in order[1:]:
        joint = w.say("[, then | and then |, and then | and |, | then ][{again} {name} ||{again} ]",
                      again=verb.lower(), name=name)  # fmt: skip
        goal += joint + w.quoted(following.label)
    return Screen(f"{goal}.", w.mixed(row, w.others(4)), [Step(d) for d in order])


def selection(w: Words) -> Screen:
    """Check or choose the listed options, or those that share a word with the list; submit."""
    role: Role = w.choice(("checkbox", "checkbox", "checkbox", "radio", "option", "option"))
    similar = role == "checkbox" and w.chance(0.3)
    row = [widget(role, w.phrase(0.5 if similar else 0.15)) for _ in range(w.randint(2, 12))]
    wanted = w.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 8)) if role == "checkbox" else 1
    chosen = w.sample(row, min(len(row), wanted))
    if w.chance(0.25):
        chosen.sort(key=row.index)
    if role == "option":
        row[0].checked = True
    button, press = w.submit()
    names = [w.choice(d.label.split()) if similar else d.label for d in chosen]
    listed = ", ".join(names) if w.chance(0.8) else " and ".join(names)
    if len(names) > 1 and w.chance(0.3):
        listed = ", ".join(names[:-1]) + " and " + names[-1]
    goal = w.say("[Select|Choose|Check|Pick|Mark|{word}] {listed}"
                 "[| from the list| from the {word} list| in the list] {press}.",
                 listed=listed or w.choice(("nothing", "none")), press=press)  # fmt: skip
    plan = [Step(d) for d in chosen if not (d.checked and d.role == "option")]
    widgets = w.mixed([*row, button], w.others(3, not_of=role))
    return Screen(goal, widgets, [*plan, Step(button)])


def path(w: Words) -> Screen:
    """Open a path of nested entries, one level at a time."""
    chain = [w.word() for _ in range(w.choice((2, 2, 3)))]
    role: Role = w.choice(("item", "item", "link", "button"))
    opened = [widget(role, label) for label in chain[: 1 + w.randrange(len(chain))]]
    row = [*opened, *(widget(role, w.word()) for _ in range(w.randint(1, 5)))]
    w.shuffle(row)
    names = w.choice((">", ">", " > ", ", then ", "/")).join(chain)
    goal = w.say("[Select|Open|Choose|Click|Go to] {names}", names=names)
    history = [past(Step(entry), row) for entry in opened[:-1]]
    return Screen(goal, row, [Step(opened[-1])], history=history)


def grouped(w: Words) -> Screen:
    """Click the action that belongs to one of several records."""
    owners = [w.phrase(0.2) for _ in range(w.randint(2, 6))]
    acts = [w.word() for _ in range(w.randint(2, 4))]
    role: Role = w.choice(("icon", "button", "link"))
    head: Role = w.choice(("text", "item", "heading", "link"))
    at, filler, widgets = w.choice(("@", "", "")), w.choice((0, 0, 1, 2)), list[Widget]()
    buttons: dict[tuple[str, str], Widget] = {}
    for name in owners:
        widgets.append(Widget(head, at + name))
        widgets += [Widget(head, w.sentence(1, 6)) for _ in range(filler)]
        for label in acts:
            buttons[name, label] = Widget(role, label)
            widgets.append(buttons[name, label])
    who, what = w.choice(owners), w.choice(acts)
    goal = w.say(
        "For the {word} {who}, [click|press|select] the {q:what} {kind}.",
        "{verb} the {q:what} {kind} of {who}.",
        "Find the {word} by {who} and [click|press] the {what} {kind} to {word} it.",
        "Find {who} in the {word} and [click|press] {what}.",
        who=at + who, what=what, kind=w.named(role),
    )  # fmt: skip
    return Screen(goal, widgets, [Step(buttons[who, what])])


def expand_and_submit(w: Words) -> Screen:
    """Open the only section, then press the button."""
    kind: Role = w.choice(("heading", "tab", "link", "item"))
    label = f"{w.word()} #{w.randint(1, 9)}" if w.chance(0.5) else w.phrase(0.3)
    head, (button, _) = Widget(kind, label, checked=False), w.submit()
    widgets = [head, button]
    goal = w.say("[Expand|Open|Unfold] the [{kind}|{name}][| below] and [click|press|hit] {label}.",
                 kind=w.named(kind), name=label.split(" #")[0], label=button.label)  # fmt: skip
    if w.chance(0.5):
        return Screen(goal, widgets, [Step(head)])
    head.checked = True
    if w.chance(0.7):
        widgets.insert(1, Widget("text", w.sentence(3, 10)))
    return Screen(goal, widgets, [Step(button)], history=[past(Step(head), widgets)])


def reveal(w: Words) -> Screen:
    """Open sections one after the other until the wanted entry is visible."""
    kind: Role = w.choice(("link", "heading", "item", "icon", "button", "tab"))
    inner: Role = w.choice(("link", "item", "item", "button"))
    stem, numbered, count = w.word(), w.chance(0.5), w.randint(1, 5)
    heads = [Widget(kind, f"{stem} #{i + 1}" if numbered else w.word()) for i in range(count)]
    opened = w.randint(0, count)
    shown = opened == count or (opened > 0 and w.chance(0.5))
    if w.chance(0.7):
        keeps = w.chance(0.3)  # several sections stay open
        for i, head in enumerate(heads):
            head.checked = i < opened if keeps else i == opened - 1
    entries = [Widget(inner, w.phrase(0.1)) for _ in range(w.randint(0, 6) if opened else 0)]
    target = Widget(inner, w.phrase(0.1))
    if shown:
        entries.insert(w.randint(0, len(entries)), target)
    if opened and w.chance(0.4):
        entries.insert(0, Widget("text", w.sentence(3, 8)))
    widgets = heads[:opened] + entries + heads[opened:] if w.chance(0.5) else heads + entries
    goal = w.say(
        "[Switch between|Expand|Navigate through|Search|{word}] the {place} [|below ]to find and "
        "[click on|click|press|open] the {inner} {q:wanted}.",
        "{word} the {place}. Find and click on the {inner} or {word} named {q:wanted}.",
        "{verb} {place} {q:wanted}", inner=inner, wanted=target.label,
        place=w.choice(("tabs", "sections", "menu", "list", "pages", "tree")),
    )  # fmt: skip
    first = 1 if opened and heads[0].checked is not None and w.chance(0.5) else 0
    history = [past(Step(head), widgets) for head in heads[first:opened]]
    return Screen(goal, widgets, [Step(target if shown else heads[opened])], history=history)


def one_field(w: Words) -> Screen:
    """Type a text into the only field, then submit."""
    text = " ".join(w.word() for _ in range(w.choice((1, 1, 1, 2, 3))))
    text = w.number() if w.chance(0.15) else text
    field = Widget("field" if w.chance(0.85) else "area", w.choice(("", w.phrase())), value="")
    (button, press), name = w.submit(), w.named(field.role)
    where = f"the {name}"
    if field.label:
        where = w.choice((where, f"the {field.label} {name}", f'{where} labeled "{field.label}"'))
    goal = w.say(
        "Enter {q:text} into {where} {press}.", "Type {q:text} in {where}, {press}.",
        "{word} {where} to enter {q:text} {press}.", "Enter {text} as the {word} {press}.",
        "Write {q:text} into {where} {press} {word} {word}.",
        text=text, where=where, press=press,
    )  # fmt: skip
    before = [Widget("label", w.phrase())] if w.chance(0.3) else []
    widgets = w.mixed([*before, field, button], w.others(5, _NO_FIELDS))
    return Screen(goal, widgets, [Step(field, text), Step(button)])


def several_fields(w: Words) -> Screen:
    """Fill two or three named fields, then submit."""
    pairs = {w.phrase(0.15): w.value(0.15) for _ in range(w.choice((2, 2, 3)))}
    names, attached = list(pairs), w.chance(0.6)
    core, fields = list[Widget](), dict[str, Widget]()
    for name in w.sample(names, len(names)) if w.chance(0.5) else names:
        role: Role = w.choice(("label", "text", "cell"))
        if not attached or w.chance(0.4):
            core.append(Widget(role, name + w.choice(("", ":"))))
        fields[name] = Widget("field", name if attached else "", value="")
        core.append(fields[name])
    # The same wording for all pairs makes the instruction unambiguous.
    forms = ("the {n} {t}", "{t} as {n}", "{n} {t}", "{n}: {t}", "{t} {word} {n}", "{word} {n} {t}")
    form, quotes = w.choices(forms, (4, 2, 2, 1, 1, 1))[0], w.choice(('"', '"', ""))
    asked = [w.say(form, n=n, t=f"{quotes}{t}{quotes}") for n, t in pairs.items()]
    button, press = w.submit()
    goal = w.say("[Enter|Type|Fill|Put|Search for|{word}] {asked}"
                 "[ into the text fields|| into the form] and {press}.",
                 asked=w.choice((" and ", ", ", " ")).join(asked), press=press)  # fmt: skip
    plan = [Step(fields[name], text) for name, text in pairs.items()]
    return Screen(goal, _around(w, [*core, button]), [*plan, Step(button)])


def same_text(w: Words) -> Screen:
    """Type the same text into every field, then submit."""
    count, text, stem = w.choice((2, 2, 3)), w.word(), w.word()
    labels = [stem] + [f"{w.word()} {stem}" for _ in range(count - 1)]
    fields = [Widget("field", label if w.chance(0.8) else "", value="") for label in labels]
    button, press = w.submit()
    goal = w.say('Enter the {stem} "{text}" into {every} text fields {press}.',
                 'Type "{text}" into {every} {name}s {press}.', stem=stem, text=text, press=press,
                 every="both" if count == 2 else "all", name=w.named("field"))  # fmt: skip
    plan = [Step(field, text) for field in fields]
    return Screen(goal, _around(w, [*fields, button]), [*plan, Step(button)])


def _table(w: Words, role: Role) -> tuple[dict[str, str], list[Widget]]:
    """Values by name, and the cells of their table."""
    pairs, colon = {w.phrase(0.2): w.value() for _ in range(w.randint(2, 6))}, w.choice(("", ":"))
    return pairs, [Widget(role, text) for n, v in pairs.items() for text in (n + colon, v)]


def look_up(w: Words) -> Screen:
    """Type the value next to a name into the field, or fill every field with that of its name."""
    pairs, table = _table(w, w.choice(("cell", "cell", "text", "item")))
    button, press = w.submit()
    if w.chance(0.6):
        name, field = w.choice(list(pairs)), widget("field", w.choice(("", w.word())))
        goal = w.say("Enter the value of {q:name} into the text field {press}.",
                     "Type the {name} {word} into the {field} {press}.",
                     "Enter the {word} of {name} into the {field} {press}.",
                     name=name, field=w.named("field"), press=press)  # fmt: skip
        return Screen(goal, [*table, field, button], [Step(field, pairs[name]), Step(button)])
    asked, colon = w.sample(list(pairs), w.randint(1, min(3, len(pairs)))), w.choice(("", ":"))
    fields = {name: widget("field", name + colon) for name in asked}
    goal = w.say("{fill} the value that {word} with each label into the [form|fields] {press}.",
                 "{fill} each {word} into the [form|fields] and submit when done.",
                 fill=w.choice(("Enter", "Fill in", "Type", w.word())), press=press)  # fmt: skip
    plan = [Step(field, pairs[name]) for name, field in fields.items()]
    return Screen(goal, [*table, *fields.values(), button], [*plan, Step(button)])


def look_up_click(w: Words) -> Screen:
    """Click the value next to a name."""
    role: Role = w.choice(("link", "item", "button", "icon"))
    pairs = {w.phrase(0.2): Widget(role, w.phrase(0.2)) for _ in range(w.randint(2, 6))}
    heads: Sequence[Role] = ("label", "text", "cell")
    table = [d for name, v in pairs.items() for d in (Widget(w.choice(heads), name), v)]
    name = w.choice(list(pairs))
    goal = w.say("Find {q:name} and click on its {kind}.", "Click the {kind} of {name}.",
                 "{word} {name} in the {word} and click their {kind}.",
                 name=name, kind=w.named(role))  # fmt: skip
    return Screen(goal, table, [Step(pairs[name])])


def search_then_open(w: Words) -> Screen:
    """Type a query, press search, and open a result."""
    query, (button, _) = w.phrase(0.3), w.submit()
    field = Widget("field", w.choice(("", w.word())), value="")
    results = [Widget("link", w.word()) for _ in range(w.randint(2, 5))]
    at = w.randrange(len(results))
    found = results[at].label if w.chance(0.5) else f"the {_NTH[at]} result"
    goal = w.say('Use the {name} to enter {q:query} and press "{button}", then find and click '
                 "{found}.", "Search for {q:query} and click {found}.", query=query, found=found,
                 button=button.label, name=w.named("field"))  # fmt: skip
    if w.chance(0.5):
        return Screen(goal, [field, button], [Step(field, query), Step(button)])
    field.value = query
    more = [Widget("text", w.sentence(3, 8))] if w.chance(0.5) else []
    widgets = [field, button, *results, *more]
    history = [past(step, widgets) for step in (Step(field, query), Step(button))]
    return Screen(goal, widgets, [Step(results[at])], history=history)


def _around(w: Words, core: list[Widget]) -> list[Widget]:
    """Distractors before or after a form, never between a caption and its field."""
    others = w.others(3, _NO_FIELDS)
    return others + core if w.chance(0.5) else core + others


Family = Callable[[Words], Screen]
FAMILIES: dict[Family, float] = {
    labelled: 2.5, of_kind: 0.8, nth: 1.5, sequence: 2.0, selection: 3.5, path: 1.0,
    grouped: 2.0, reveal: 2.0, expand_and_submit: 0.4, one_field: 1.5, several_fields: 4.0,
    same_text: 0.7, look_up: 2.5, look_up_click: 1.0, search_then_open: 0.7,
}  # fmt: skip
"""Families of page instructions and their weights, which are our defaults."""
