"""Samples of level 2 of stage 1 on an invented device, whose apps consist of random words.

On a device, an agent must recognise from the screen and the history that the task is complete, and
declare it (``status``). These samples teach it to open the app that an instruction names, to use
forms, switches, lists and detail screens, to answer, to leave a wrong screen, and to stop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from demos.base_agent.screens import (
    BACK,
    DEVICE_ACTIONS,
    DONE,
    ActionSample,
    Screen,
    Step,
    Widget,
    WordSampler,
    past,
    to_sample,
    widget,
)
from swarm_ui.action import Action
from swarm_ui.observation import Role


class AppScreen(NamedTuple):
    """One screen on the way to a goal, and its correct step."""

    title: str
    widgets: list[Widget]
    step: Step


def device_sample(words: WordSampler) -> ActionSample:
    """A random step of a random task on an invented device."""
    rng = words.rng
    family = rng.choices((_toggle, _form, _detail, _answer, _checks), (1, 2, 1.5, 1, 1.2))[0]
    goal, screens = family(words)
    if rng.random() < 0.12:
        wrong = AppScreen(words.word(), _others(words, rng.randint(2, 6)), BACK)
        screens.insert(rng.randrange(1, len(screens)), wrong)
    at = rng.randrange(len(screens))
    history = [past(screen.step, screen.widgets) for screen in screens[:at]]
    title, widgets, step = screens[at]
    if step is BACK:  # a click on another element led to the wrong screen
        clicked = Widget("button", words.word())
        history.append(past(Step(clicked), [clicked]))
    screen = Screen(goal, widgets, [step], title, history, DEVICE_ACTIONS)
    return to_sample(screen, rng, at=0)


def _others(words: WordSampler, count: int) -> list[Widget]:
    roles: tuple[Role, ...] = ("button", "button", "item", "switch", "text", "checkbox")
    return [widget(words.rng.choice(roles), words.phrase(0.15)) for _ in range(count)]


def _mixed(words: WordSampler, widgets: list[Widget], others: int = 3) -> list[Widget]:
    out = widgets + _others(words, words.rng.randint(0, others))
    words.rng.shuffle(out)
    return out


def _home(words: WordSampler, app: str) -> AppScreen:
    icon = Widget("app", app)
    widgets = [icon, *(Widget("app", words.phrase(0.1)) for _ in range(words.rng.randint(3, 10)))]
    words.rng.shuffle(widgets)
    return AppScreen("home", widgets, Step(icon))


def _app(words: WordSampler) -> tuple[str, str]:
    """The name of an app, and a phrase that mentions it in an instruction."""
    app = words.phrase(0.1)
    return app, words.one_of(f" in {app}", f" in the {app} app", f" on the {app} screen", f" {app}")


def _toggle(words: WordSampler) -> tuple[str, list[AppScreen]]:
    rng = words.rng
    app, mention = _app(words)
    wanted = rng.random() < 0.5
    switch = Widget("switch", words.phrase(), checked=not wanted)
    state = "on" if wanted else "off"
    goal = words.one_of(
        f"Turn {state} {switch.label}",
        f"Switch {switch.label} {state}",
        f"{words.word()} {switch.label} {state}",
    )
    screens = [_home(words, app)]
    count = rng.randint(1, 4)
    rest = [Widget("switch", words.phrase(), checked=rng.random() < 0.5) for _ in range(count)]
    if rng.random() < 0.5:
        category = Widget("item", words.phrase(0.1))
        goal += rng.choice((f" under {category.label}", f" in {category.label}"))
        menu = [category, *(Widget("item", words.word()) for _ in range(rng.randint(1, 4)))]
        screens.append(AppScreen(app, _mixed(words, menu, 2), Step(category)))
    screen = _mixed(words, [switch, *rest], 2)
    if rng.random() < 0.8:
        screens.append(AppScreen(words.word(), screen, Step(switch)))
    flipped = [replace(d, checked=wanted) if d is switch else d for d in screen]
    screens.append(AppScreen(words.word(), flipped, DONE))
    return f"{goal}{mention}", screens


def _form(words: WordSampler) -> tuple[str, list[AppScreen]]:
    rng = words.rng
    app, mention = _app(words)
    names = [words.phrase(0.1) for _ in range(rng.randint(1, 4))]
    texts = [words.number() if rng.random() < 0.35 else words.phrase(0.35) for _ in names]
    add = Widget("button", rng.choice(("add", "new", "create", "compose", words.word())))
    save = Widget("button", rng.choice(("save", "save", "send", "done", words.word())))
    asked = [
        rng.choice((f"{n} {t}", f'{n} "{t}"', f"{n}: {t}", f"{n} is {t}", f"{t} as {n}"))
        for n, t in zip(names, texts, strict=True)
    ]
    joint = rng.choice((" and ", ", ", " with "))
    goal = f"{rng.choice(('Add', 'Create', 'Make', 'New', words.word()))} {words.word()}{mention} "
    goal += f"{rng.choice(('with ', '', ': '))}{joint.join(asked)}"
    entries = [Widget("item", words.phrase()) for _ in range(rng.randint(0, 4))]
    screens = [_home(words, app), AppScreen(app, _mixed(words, [add, *entries], 2), Step(add))]
    order = rng.sample(range(len(names)), len(names))
    layout = [*order, -1, -2]
    rng.shuffle(layout)
    title, cancel = words.word(), Widget("button", "cancel")
    given = [""] * len(names)
    if rng.random() < 0.15:
        given[rng.randrange(len(names))] = words.word()
    for step in range(len(names) + 1):
        fields = [Widget("field", n, value=v) for n, v in zip(names, given, strict=True)]
        button = Widget("button", save.label)
        widgets = [button if i == -1 else cancel if i == -2 else fields[i] for i in layout]
        if step < len(names):
            screens.append(AppScreen(title, widgets, Step(fields[step], texts[step])))
            given[step] = texts[step]
        else:
            screens.append(AppScreen(title, widgets, Step(button)))
    notice = Widget("text", rng.choice(("saved", "sent", words.word())))
    made = rng.choice((Widget("item", texts[0]), notice))
    screens.append(AppScreen(app, _mixed(words, [made, add, *entries], 2), DONE))
    return goal, screens


def _detail(words: WordSampler) -> tuple[str, list[AppScreen]]:
    rng = words.rng
    app, mention = _app(words)
    target, entries = _entries(words, 5)
    act = Widget("button", rng.choice(("delete", "share", "call", "archive", "edit", words.word())))
    kind = rng.choice(("", f"{words.word()} "))
    goal = f"{act.label.capitalize()} the {kind}{words.quoted(target.label)}"
    add = Widget("button", rng.choice(("add", "new", words.word())))
    screens = [_home(words, app), AppScreen(app, _mixed(words, [*entries, add], 1), Step(target))]
    detail = _mixed(words, [act, Widget("button", words.word())], 3)
    screens.append(AppScreen(target.label, detail, Step(act)))
    if rng.random() < 0.5:
        confirm = Widget("button", rng.choice(("ok", "yes", "confirm", act.label)))
        dialog = _mixed(words, [confirm, Widget("button", "cancel")], 0)
        title = rng.choice(("confirm", act.label, words.word()))
        screens.append(AppScreen(title, dialog, Step(confirm)))
    left = [Widget("item", d.label) for d in entries if d is not target]
    screens.append(AppScreen(app, _mixed(words, [*left, add], 1), DONE))
    return f"{goal}{mention}", screens


def _answer(words: WordSampler) -> tuple[str, list[AppScreen]]:
    rng = words.rng
    app, mention = _app(words)
    target, entries = _entries(words, 4)
    names = [words.word() for _ in range(rng.randint(1, 4))]
    values = [words.number() if rng.random() < 0.6 else words.phrase(0.3) for _ in names]
    at = rng.randrange(len(names))
    goal = words.one_of(
        f"What is the {names[at]} of {target.label}{mention}?",
        f"Tell me the {names[at]} of {words.quoted(target.label)}{mention}.",
        f"Which {names[at]} does {target.label} have{mention}?",
    )
    pairs = zip(names, values, strict=True)
    rows = [Widget("text", f"{n}: {v}" if rng.random() < 0.8 else f"{n} {v}") for n, v in pairs]
    detail = _mixed(words, rows, 2)
    screens = [_home(words, app), AppScreen(app, _mixed(words, entries, 2), Step(target))]
    said = Step(act=Action(action_type="answer", text=values[at]))
    screens.append(AppScreen(target.label, detail, said))
    screens.append(AppScreen(target.label, detail, DONE))
    return goal, screens


def _checks(words: WordSampler) -> tuple[str, list[AppScreen]]:
    rng = words.rng
    app, mention = _app(words)
    boxes = [Widget("checkbox", words.phrase(), checked=False) for _ in range(rng.randint(2, 6))]
    chosen = rng.sample(boxes, rng.randint(1, min(3, len(boxes))))
    joint = rng.choice((" and ", ", "))
    verb = rng.choice(("Check", "Tick", "Complete", "Mark", words.word()))
    goal = f"{verb} {joint.join(d.label for d in chosen)}{mention}"
    layout = _mixed(words, list(boxes), 2)
    screens, on = [_home(words, app)], set[int]()
    for step in range(len(chosen) + 1):
        copies = {id(d): replace(d) for d in layout}
        for box in boxes:
            copies[id(box)].checked = id(box) in on
        widgets = [copies[id(d)] for d in layout]
        if step < len(chosen):
            screens.append(AppScreen(app, widgets, Step(copies[id(chosen[step])])))
            on.add(id(chosen[step]))
        else:
            screens.append(AppScreen(app, widgets, DONE))
    return goal, screens


def _entries(words: WordSampler, most: int) -> tuple[Widget, list[Widget]]:
    """An entry of a list, and the whole list, which has up to ``most`` other entries."""
    target = Widget("item", words.phrase(0.5))
    others = [Widget("item", _like(words, target.label)) for _ in range(words.rng.randint(1, most))]
    return target, [target, *others]


def _like(words: WordSampler, label: str) -> str:
    """A random label that differs from ``label``; it sometimes shares a word with it."""
    parts = label.split()
    if len(parts) > 1 and words.rng.random() < 0.3:
        return words.rng.choice((f"{parts[0]} {words.word()}", f"{words.word()} {parts[-1]}"))
    return words.phrase(0.5)
