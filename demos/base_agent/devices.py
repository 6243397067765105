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
    Words,
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


def device_sample(w: Words) -> ActionSample:
    """A random step of a random task on an invented device."""
    family = w.choices((_toggle, _form, _detail, _answer, _checks), (1, 2, 1.5, 1, 1.2))[0]
    app = w.phrase(0.1)
    goal, screens = family(w, app)
    mention = w.say("[ in {app}| in the {app} app| on the {app} screen| {app}]", app=app)
    end = goal[-1] if goal[-1] in "?." else ""
    goal = goal.removesuffix(end) + mention + end
    icon = Widget("app", app)
    icons = [icon, *(Widget("app", w.phrase(0.1)) for _ in range(w.randint(3, 10)))]
    screens.insert(0, AppScreen("home", w.sample(icons, len(icons)), Step(icon)))
    if w.chance(0.12):
        wrong = AppScreen(w.word(), _mixed(w, [], 6, least=2), BACK)
        screens.insert(w.randrange(1, len(screens)), wrong)
    at = w.randrange(len(screens))
    history = [past(screen.step, screen.widgets) for screen in screens[:at]]
    title, widgets, step = screens[at]
    if step is BACK:  # a click on another element led to the wrong screen
        clicked = Widget("button", w.word())
        history.append(past(Step(clicked), [clicked]))
    return to_sample(Screen(goal, widgets, [step], title, history, DEVICE_ACTIONS), at=0)


def _mixed(w: Words, widgets: list[Widget], most: int, least: int = 0) -> list[Widget]:
    """The widgets among up to ``most`` others."""
    roles: tuple[Role, ...] = ("button", "button", "item", "switch", "text", "checkbox")
    count = w.randint(least, most)
    out = [*widgets, *(widget(w.choice(roles), w.phrase(0.15)) for _ in range(count))]
    w.shuffle(out)
    return out


def _button(w: Words, *labels: str) -> Widget:
    return Widget("button", w.choice((*labels, w.word())))


def _entries(w: Words, most: int) -> list[Widget]:
    """A list of entries, of which the first is meant; others sometimes share a word with it."""
    label = w.phrase(0.5)
    first, *_, last = label.split() * 2
    labels = [label]
    for _ in range(w.randint(1, most)):
        like = w.choice((f"{first} {w.word()}", f"{w.word()} {last}"))
        labels.append(like if " " in label and w.chance(0.3) else w.phrase(0.5))
    return [Widget("item", each) for each in labels]


def _toggle(w: Words, app: str) -> tuple[str, list[AppScreen]]:
    wanted, screens = w.chance(0.5), list[AppScreen]()
    switch = Widget("switch", w.phrase(), checked=not wanted)
    rest = [Widget("switch", w.phrase(), checked=w.chance(0.5)) for _ in range(w.randint(1, 4))]
    goal = w.say("Turn {state} {label}", "Switch {label} {state}", "{word} {label} {state}",
                 state="on" if wanted else "off", label=switch.label)  # fmt: skip
    if w.chance(0.5):
        category = Widget("item", w.phrase(0.1))
        goal += w.say("[ under | in ]{label}", label=category.label)
        menu = [category, *(Widget("item", w.word()) for _ in range(w.randint(1, 4)))]
        screens.append(AppScreen(app, _mixed(w, menu, 2), Step(category)))
    screen = _mixed(w, [switch, *rest], 2)
    if w.chance(0.8):
        screens.append(AppScreen(w.word(), screen, Step(switch)))
    flipped = [replace(d, checked=wanted) if d is switch else d for d in screen]
    return goal, [*screens, AppScreen(w.word(), flipped, DONE)]


def _form(w: Words, app: str) -> tuple[str, list[AppScreen]]:
    pairs = {w.phrase(0.1): w.number() if w.chance(0.35) else w.phrase(0.35)
             for _ in range(w.randint(1, 4))}  # fmt: skip
    add, save = _button(w, "add", "new", "create", "compose"), _button(w, "save", "save", "send")
    asked = [w.say("{n} {t}", '{n} "{t}"', "{n}: {t}", "{n} is {t}", "{t} as {n}", n=n, t=t)
             for n, t in pairs.items()]  # fmt: skip
    goal = w.say("[Add|Create|Make|New|{word}] {word} [with ||: ]{asked}",
                 asked=w.choice((" and ", ", ", " with ")).join(asked))  # fmt: skip
    entries = [Widget("item", w.phrase()) for _ in range(w.randint(0, 4))]
    screens = [AppScreen(app, _mixed(w, [add, *entries], 2), Step(add))]
    names, title, cancel = list(pairs), w.word(), Widget("button", "cancel")
    w.shuffle(names)
    layout: list[str | Widget] = w.sample([*names, save, cancel], len(names) + 2)
    given = dict.fromkeys(names, "")
    if w.chance(0.15):
        given[w.choice(names)] = w.word()
    for name in (*names, None):
        fields = {n: Widget("field", n, value=v) for n, v in given.items()}
        widgets = [fields[d] if isinstance(d, str) else d for d in layout]
        if name is None:
            screens.append(AppScreen(title, widgets, Step(save)))
        else:
            screens.append(AppScreen(title, widgets, Step(fields[name], pairs[name])))
            given[name] = pairs[name]
    notice = Widget("text", w.choice(("saved", "sent", w.word())))
    made = w.choice((Widget("item", next(iter(pairs.values()))), notice))
    return goal, [*screens, AppScreen(app, _mixed(w, [made, add, *entries], 2), DONE)]


def _detail(w: Words, app: str) -> tuple[str, list[AppScreen]]:
    target, *rest = _entries(w, 5)
    act, add = _button(w, "delete", "share", "call", "archive", "edit"), _button(w, "add", "new")
    goal = w.say("{act} the [|{word} ]{q:label}", act=act.label.capitalize(), label=target.label)
    detail = _mixed(w, [act, Widget("button", w.word())], 3)
    screens = [AppScreen(app, _mixed(w, [target, *rest, add], 1), Step(target)),
               AppScreen(target.label, detail, Step(act))]  # fmt: skip
    if w.chance(0.5):
        confirm = Widget("button", w.choice(("ok", "yes", "confirm", act.label)))
        dialog = _mixed(w, [confirm, Widget("button", "cancel")], 0)
        screens.append(AppScreen(w.choice(("confirm", act.label, w.word())), dialog, Step(confirm)))
    return goal, [*screens, AppScreen(app, _mixed(w, [*rest, add], 1), DONE)]


def _answer(w: Words, app: str) -> tuple[str, list[AppScreen]]:
    target, *rest = _entries(w, 4)
    pairs = {w.word(): w.number() if w.chance(0.6) else w.phrase(0.3)
             for _ in range(w.randint(1, 4))}  # fmt: skip
    name = w.choice(list(pairs))
    goal = w.say("What is the {name} of {label}?", "Tell me the {name} of {q:label}.",
                 "Which {name} does {label} have?", name=name, label=target.label)  # fmt: skip
    rows = [Widget("text", w.choice((f"{n}: {v}",) * 4 + (f"{n} {v}",))) for n, v in pairs.items()]
    detail = _mixed(w, rows, 2)
    said = Step(act=Action(action_type="answer", text=pairs[name]))
    return goal, [AppScreen(app, _mixed(w, [target, *rest], 2), Step(target)),
                  AppScreen(target.label, detail, said),
                  AppScreen(target.label, detail, DONE)]  # fmt: skip


def _checks(w: Words, app: str) -> tuple[str, list[AppScreen]]:
    boxes = [Widget("checkbox", w.phrase(), checked=False) for _ in range(w.randint(2, 6))]
    chosen = w.sample(boxes, w.randint(1, min(3, len(boxes))))
    labels = w.choice((" and ", ", ")).join(d.label for d in chosen)
    goal = w.say("[Check|Tick|Complete|Mark|{word}] {labels}", labels=labels)
    layout, screens = _mixed(w, list(boxes), 2), list[AppScreen]()
    for step in range(len(chosen) + 1):
        on = {id(box) for box in chosen[:step]}
        copies = {id(d): replace(d, checked=True if id(d) in on else d.checked) for d in layout}
        right = Step(copies[id(chosen[step])]) if step < len(chosen) else DONE
        screens.append(AppScreen(app, [copies[id(d)] for d in layout], right))
    return goal, screens
