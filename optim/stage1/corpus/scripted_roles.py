"""The three roles without a language model, for worlds that know how to do their tasks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.stage1.corpus.roles import Item, Said, Scene, Written

_WORDINGS = 3
_REASONS = (
    "{what} is the next thing to do for this goal.",
    "To get on with the goal, {what} comes now.",
    "Nothing else on the screen is nearer to the goal than this: {what}.",
)


class Expert:
    """The environment's own expert as UI agent; questions and instructions come from what the
    elements say of themselves."""

    name = "expert (scripted)"

    async def act(self, scene: Scene, decision: Decision, *, seed: int, temperature: float) -> Said:
        """Raises ``ConfigError`` if the environment has no expert."""
        world = _graded(scene.environment)
        if scene.state is not None:
            world.restore(scene.state)
        return Said(reply(world.expert(), scene.observation, random.Random(seed)))

    async def questions(self, scene: Scene, *, seed: int) -> Written:
        """In random order."""
        items = [*about_screen(scene.observation), *about_elements(scene.observation)]
        random.Random(seed).shuffle(items)
        return Written(items)

    async def instructions(self, scene: Scene, *, seed: int) -> Written:
        """In random order."""
        rng = random.Random(seed)
        items = list(one_step(scene.observation, rng))
        rng.shuffle(items)
        return Written(items)


class Mistaken:
    """The mistakes of :class:`~swarm_ui.optim.preferences.scripted_adversary.ScriptedAdversary`,
    with reasons in the same words as the expert's."""

    name = "adversary (scripted)"

    async def oppose(self, scene: Scene, good: Action, *, seed: int) -> Said | None:
        """Always finds one."""
        decision = Decision(observation=scene.observation)
        action = await ScriptedAdversary().oppose(decision, good, seed=seed)
        if action is None:
            return None
        return Said(reply(action, scene.observation, random.Random(seed)))


class Grader:
    """The world's own verdict on actions; answers are right if the screen itself says so, and
    without a score where it does not say."""

    name = "grader (scripted)"

    async def answers(self, scene: Scene, items: Sequence[Item]) -> list[float | None]:
        """1.0 or 0.0 for questions that :class:`Expert` asks too; ``None`` for others."""
        screen = scene.observation
        right = {(i.asked, _say(i)) for i in (*about_screen(screen), *about_elements(screen))}
        for draw in range(_WORDINGS):
            right |= {(i.asked, _say(i)) for i in one_step(screen, random.Random(0), draw)}
        known = {asked for asked, _ in right}
        return [
            (1.0 if (item.asked, _say(item)) in right else 0.0) if item.asked in known else None
            for item in items
        ]

    async def acts(self, scene: Scene, replies: Sequence[str], *, seed: int) -> list[float | None]:
        """Raises ``ConfigError`` if the environment cannot grade."""
        world = _graded(scene.environment)
        world.restore(scene.state)
        actions = [parse_action(text) for text in replies]
        return [0.0 if isinstance(a, Unparsed) else float(world.grade(a)) for a in actions]


def reply(action: Action, observation: Observation, rng: random.Random) -> str:
    """An action with a reason, in the form that agents are asked for."""
    element = observation.element(action.index)
    what = action.action_type.replace("_", " ")
    if element is not None and element.label:
        what += f' on the {element.role} "{" ".join(element.label.split())}"'
    elif element is not None:
        what += f" on the {element.role} number {element.index}"
    for detail in (action.text, action.direction, action.goal_status, action.app_name):
        if detail:
            what += f' "{" ".join(detail.split())}"'
    return f"Reason: {rng.choice(_REASONS).format(what=what)}\nAction: {action.json()}"


def about_screen(observation: Observation) -> Iterator[Item]:
    """Questions that the screen as a whole answers."""
    if observation.app:
        yield Item("What is in front?", f'It is "{observation.app}".', "screen")
    fields = [_name(e) for e in observation.elements if e.editable]
    typed = f"{len(fields)}: {', '.join(fields)}." if fields else "There is none."
    yield Item("How many fields can be typed into, and which?", typed, "screen")
    on = [_name(e) for e in observation.elements if e.checked]
    if any(e.checked is not None for e in observation.elements):
        yield Item("What is switched on?", f"{', '.join(on) or 'Nothing'}.", "screen")


def about_elements(observation: Observation) -> Iterator[Item]:
    """Questions about one element each, of those with a label of their own."""
    for element in _named(observation):
        label = " ".join(element.label.split())
        where = f'Where is "{label}", and what kind of element is it?'
        yield Item(where, f"Element {element.index}, of the kind “{element.role}”.", "element")
        if element.checked is not None:
            state = "It is on." if element.checked else "It is off."
            yield Item(f'Is "{label}" on or off?', state, "element")
        if element.value:
            held = f'It says "{" ".join(element.value.split())}".'
            yield Item(f'What does "{label}" hold?', held, "element")
        if element.editable:
            how = f"One types into element {element.index} with input_text."
            yield Item(f'With which action does one use "{label}"?', how, "element")


def one_step(
    observation: Observation, rng: random.Random, wording: int | None = None
) -> Iterator[Item]:
    """Instructions that take one action, with that action.

    Args:
        observation: the screen.
        rng: draws wordings, texts and reasons.
        wording: all instructions in this wording, with every text; ``None``: one of each.
    """
    for element in _named(observation):
        if not element.enabled:
            continue
        label = " ".join(element.label.split())
        draw = rng.randrange(_WORDINGS) if wording is None else wording
        for wordings, action in _acts(element, observation, rng, wording is not None):
            if _allowed(action.action_type, observation):
                asked = wordings[draw % len(wordings)].format(label=label, text=action.text)
                yield Item(asked, reply(action, observation, rng))


def _acts(
    element: Element, observation: Observation, rng: random.Random, every: bool
) -> Iterator[tuple[tuple[str, ...], Action]]:
    """Wordings of what can be done with an element, and the action."""
    here = Action(action_type="click", target=element.label, index=element.index)
    if element.editable:
        words = _words(observation)
        wordings = (
            'Type "{text}" into {label}',
            "Write {text} in {label}",
            "Fill {label} with {text}",
        )
        for word in words if every else [rng.choice(words)]:
            yield wordings, replace(here, action_type="input_text", text=word)
    elif element.checked is not None:
        wordings = ("Switch {label} on", "Make sure that {label} is on", "Turn on {label}")
        done = Action(action_type="status", goal_status="complete")
        yield wordings, done if element.checked else here
    elif element.clickable:
        yield ("Tap {label}", "Press “{label}”", "Click on {label}"), here
    if element.value:
        yield ("What does {label} say?",), Action(action_type="answer", text=element.value)


def _say(item: Item) -> str:
    """What an answer says: its action if it has one, whatever the reason."""
    action = parse_action(item.answer)
    return item.answer if isinstance(action, Unparsed) else action.json()


def _named(observation: Observation) -> list[Element]:
    """Elements whose label no other one has."""
    times = Counter(element.label.casefold() for element in observation.elements)
    return [e for e in observation.elements if e.label.strip() and times[e.label.casefold()] == 1]


def _words(observation: Observation) -> list[str]:
    words = [w for e in observation.elements for w in e.label.split() if w.isalpha()]
    return words or ["hello"]


def _name(element: Element) -> str:
    return " ".join(element.label.split()) or f"element {element.index}"


def _allowed(kind: str, observation: Observation) -> bool:
    return not observation.actions or kind in observation.actions


def _graded(environment: Environment) -> Graded:
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"scripted roles need an environment with expert() and grade(); {environment.name} "
            "has none. Give language models for the roles"
        )
    return environment
