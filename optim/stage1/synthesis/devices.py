"""Level 2 on an invented device: apps of random words, walked step by step.

A device knows when nothing is left to do only from the screen and the history, and has to be told
(``status``); here an agent learns to open the app an instruction names, to work through a form, a
switch, a list or a detail screen, to answer, to go back from a wrong place, and to stop.
"""

from __future__ import annotations

from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.observation import Past, Role
from swarm_ui.optim.stage1.synthesis.pages import blank
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import (
    BACK,
    DEVICE_ACTIONS,
    DONE,
    Draft,
    Lesson,
    Move,
    Scene,
    past,
    stage,
)


@dataclass(slots=True)
class Frame:
    """One screen of a walk and the move that is right on it."""

    title: str
    drafts: list[Draft]
    move: Move


def device_lesson(bag: Bag) -> Lesson:
    """A random step of a random task on an invented device."""
    rng = bag.rng
    family = rng.choices((_toggle, _form, _detail, _answer, _checks), (1, 2, 1.5, 1, 1.2))[0]
    goal, frames = family(bag)
    if rng.random() < 0.12:
        wrong = Frame(bag.word(), _others(bag, rng.randint(2, 6)), BACK)
        frames.insert(rng.randrange(1, len(frames)), wrong)
    at = rng.randrange(len(frames))
    history: list[Past] = [past(f.move, f.drafts) for f in frames[:at]]
    if frames[at].move is BACK:  # what led to the wrong screen was a click there
        lost = Draft("button", bag.word())
        history.append(past(Move(lost), [lost]))
    frame = frames[at]
    scene = Scene(
        goal=goal,
        drafts=frame.drafts,
        plan=[frame.move],
        title=frame.title,
        history=history,
        actions=DEVICE_ACTIONS,
    )
    return stage(scene, rng, at=0)


def _others(bag: Bag, count: int) -> list[Draft]:
    roles: tuple[Role, ...] = ("button", "button", "item", "switch", "text", "checkbox")
    return [blank(bag.rng.choice(roles), bag.phrase(0.15)) for _ in range(count)]


def _mixed(bag: Bag, drafts: list[Draft], others: int = 3) -> list[Draft]:
    """Shuffled with up to ``others`` elements that do not matter."""
    out = drafts + _others(bag, bag.rng.randint(0, others))
    bag.rng.shuffle(out)
    return out


def _home(bag: Bag, app: str) -> Frame:
    icon = Draft("app", app)
    rest = [Draft("app", bag.phrase(0.1)) for _ in range(bag.rng.randint(3, 10))]
    drafts = [icon, *rest]
    bag.rng.shuffle(drafts)
    return Frame("home", drafts, Move(icon))


def _app(bag: Bag) -> tuple[str, str]:
    """An app's name, and how an instruction may mention it (often, not always)."""
    app = bag.phrase(0.1)
    mention = bag.rng.choice(
        (f" in {app}", f" in the {app} app", f" on the {app} screen", f" {app}")
    )
    return app, mention


def _toggle(bag: Bag) -> tuple[str, list[Frame]]:
    rng = bag.rng
    app, mention = _app(bag)
    wanted = rng.random() < 0.5
    switch = Draft("switch", bag.phrase(), checked=not wanted)
    state = "on" if wanted else "off"
    goal = rng.choice(
        (
            f"Turn {state} {switch.label}",
            f"Switch {switch.label} {state}",
            f"{bag.word()} {switch.label} {state}",
        )
    )
    frames = [_home(bag, app)]
    rest = [
        Draft("switch", bag.phrase(), checked=rng.random() < 0.5) for _ in range(rng.randint(1, 4))
    ]
    if rng.random() < 0.5:
        category = Draft("item", bag.phrase(0.1))
        goal += rng.choice((f" under {category.label}", f" in {category.label}"))
        menu = [category, *(Draft("item", bag.word()) for _ in range(rng.randint(1, 4)))]
        frames.append(Frame(app, _mixed(bag, menu, 2), Move(category)))
    screen = _mixed(bag, [switch, *rest], 2)
    if rng.random() < 0.8:
        frames.append(Frame(bag.word(), screen, Move(switch)))
    flipped = [
        Draft(d.role, d.label, d.value, wanted if d is switch else d.checked) for d in screen
    ]
    frames.append(Frame(bag.word(), flipped, DONE))
    return f"{goal}{mention}", frames


def _form(bag: Bag) -> tuple[str, list[Frame]]:
    rng = bag.rng
    app, mention = _app(bag)
    names = [bag.phrase(0.1) for _ in range(rng.randint(1, 4))]
    texts = [bag.number() if rng.random() < 0.35 else bag.phrase(0.35) for _ in names]
    add = Draft("button", rng.choice(("add", "new", "create", "compose", bag.word())))
    save = Draft("button", rng.choice(("save", "save", "send", "done", bag.word())))
    asked = [
        rng.choice((f"{n} {t}", f'{n} "{t}"', f"{n}: {t}", f"{n} is {t}", f"{t} as {n}"))
        for n, t in zip(names, texts, strict=True)
    ]
    joint = rng.choice((" and ", ", ", " with "))
    goal = f"{rng.choice(('Add', 'Create', 'Make', 'New', bag.word()))} {bag.word()}{mention} "
    goal += f"{rng.choice(('with ', '', ': '))}{joint.join(asked)}"
    entries = [Draft("item", bag.phrase()) for _ in range(rng.randint(0, 4))]
    frames = [_home(bag, app), Frame(app, _mixed(bag, [add, *entries], 2), Move(add))]
    order = rng.sample(range(len(names)), len(names))
    layout = [*order, -1, -2]
    rng.shuffle(layout)
    title, cancel = bag.word(), Draft("button", "cancel")
    given = [""] * len(names)
    if rng.random() < 0.15:
        given[rng.randrange(len(names))] = bag.word()
    for step in range(len(names) + 1):
        fields = [Draft("field", n, value=v) for n, v in zip(names, given, strict=True)]
        button = Draft("button", save.label)
        drafts = [button if i == -1 else cancel if i == -2 else fields[i] for i in layout]
        if step < len(names):
            frames.append(Frame(title, drafts, Move(fields[step], texts[step])))
            given[step] = texts[step]
        else:
            frames.append(Frame(title, drafts, Move(button)))
    made = rng.choice(
        (Draft("item", texts[0]), Draft("text", rng.choice(("saved", "sent", bag.word()))))
    )
    frames.append(Frame(app, _mixed(bag, [made, add, *entries], 2), DONE))
    return goal, frames


def _detail(bag: Bag) -> tuple[str, list[Frame]]:
    rng = bag.rng
    app, mention = _app(bag)
    target = Draft("item", bag.phrase(0.5))
    entries = [target, *(Draft("item", _like(bag, target.label)) for _ in range(rng.randint(1, 5)))]
    act = Draft("button", rng.choice(("delete", "share", "call", "archive", "edit", bag.word())))
    kind = rng.choice(("", f"{bag.word()} "))
    goal = f"{act.label.capitalize()} the {kind}{bag.quoted(target.label)}"
    add = Draft("button", rng.choice(("add", "new", bag.word())))
    frames = [_home(bag, app), Frame(app, _mixed(bag, [*entries, add], 1), Move(target))]
    frames.append(
        Frame(target.label, _mixed(bag, [act, Draft("button", bag.word())], 3), Move(act))
    )
    if rng.random() < 0.5:
        confirm = Draft("button", rng.choice(("ok", "yes", "confirm", act.label)))
        dialog = _mixed(bag, [confirm, Draft("button", "cancel")], 0)
        frames.append(Frame(rng.choice(("confirm", act.label, bag.word())), dialog, Move(confirm)))
    left = [Draft("item", d.label) for d in entries if d is not target]
    frames.append(Frame(app, _mixed(bag, [*left, add], 1), DONE))
    return f"{goal}{mention}", frames


def _answer(bag: Bag) -> tuple[str, list[Frame]]:
    rng = bag.rng
    app, mention = _app(bag)
    target = Draft("item", bag.phrase(0.5))
    entries = [target, *(Draft("item", _like(bag, target.label)) for _ in range(rng.randint(1, 4)))]
    names = [bag.word() for _ in range(rng.randint(1, 4))]
    values = [bag.number() if rng.random() < 0.6 else bag.phrase(0.3) for _ in names]
    at = rng.randrange(len(names))
    goal = rng.choice(
        (
            f"What is the {names[at]} of {target.label}{mention}?",
            f"Tell me the {names[at]} of {bag.quoted(target.label)}{mention}.",
            f"Which {names[at]} does {target.label} have{mention}?",
        )
    )
    rows = [
        Draft("text", f"{n}: {v}") if rng.random() < 0.8 else Draft("text", f"{n} {v}")
        for n, v in zip(names, values, strict=True)
    ]
    detail = _mixed(bag, rows, 2)
    frames = [_home(bag, app), Frame(app, _mixed(bag, entries, 2), Move(target))]
    said = Move(act=Action(action_type="answer", text=values[at]))
    frames.append(Frame(target.label, detail, said))
    frames.append(Frame(target.label, detail, DONE))
    return goal, frames


def _checks(bag: Bag) -> tuple[str, list[Frame]]:
    rng = bag.rng
    app, mention = _app(bag)
    boxes = [Draft("checkbox", bag.phrase(), checked=False) for _ in range(rng.randint(2, 6))]
    chosen = rng.sample(boxes, rng.randint(1, min(3, len(boxes))))
    joint = rng.choice((" and ", ", "))
    verb = rng.choice(("Check", "Tick", "Complete", "Mark", bag.word()))
    goal = f"{verb} {joint.join(d.label for d in chosen)}{mention}"
    layout = _mixed(bag, list(boxes), 2)
    frames, on = [_home(bag, app)], set[int]()
    for step in range(len(chosen) + 1):
        copies = {id(d): Draft(d.role, d.label, d.value, d.checked) for d in layout}
        for box in boxes:
            copies[id(box)].checked = id(box) in on
        drafts = [copies[id(d)] for d in layout]
        if step < len(chosen):
            frames.append(Frame(app, drafts, Move(copies[id(chosen[step])])))
            on.add(id(chosen[step]))
        else:
            frames.append(Frame(app, drafts, DONE))
    return goal, frames


def _like(bag: Bag, label: str) -> str:
    """Another label, sometimes sharing a word with this one."""
    words = label.split()
    if len(words) > 1 and bag.rng.random() < 0.3:
        return bag.rng.choice((f"{words[0]} {bag.word()}", f"{bag.word()} {words[-1]}"))
    return bag.phrase(0.5)
