"""The roles without a language model, for environments that can solve their own tasks.

Questions and instructions are templates that are filled in from the elements of any screen.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.stage1.roles import Item, Read, WalkState
from swarm_ui.optim.stage1.samples import Level

_REASONS = (
    "{what} is the next thing to do for this goal.",
    "To get on with the goal, {what} comes now.",
    "Nothing else on the screen is nearer to the goal than this: {what}.",
)


class ScriptedRole:
    """Every role without a language model.

    It follows the environment's expert, asks by templates, makes the mistakes of
    :class:`~swarm_ui.optim.adversary.ScriptedAdversary` with reasons in the same words, and grades
    actions with the environment. Questions and instructions are right, because it wrote them.
    """

    name = "expert (scripted)"

    async def act(self, state: WalkState, *, seed: int, temperature: float) -> str:
        """The action of the environment's expert, with a reason. Raises ``ConfigError`` if the
        environment has no expert."""
        graded = expert_of(state.environment)
        if state.snapshot is not None:
            graded.restore(state.snapshot)
        return reply_text(graded.expert(), state.observation, random.Random(seed))

    async def write(self, state: WalkState, level: Level, *, seed: int) -> list[Item | None]:
        screen, rng = state.observation, random.Random(seed)
        questions = (*about_screen(screen), *about_elements(screen))
        items: list[Item | None] = [*(questions if level == 1 else one_step(screen, rng))]
        rng.shuffle(items)
        return items

    async def oppose(self, state: WalkState, good: Action, *, seed: int) -> str | None:
        decision = Decision(observation=state.observation)
        action = await ScriptedAdversary().oppose(decision, good, seed=seed)
        if action is None:
            return None
        return reply_text(action, state.observation, random.Random(seed))

    async def score_answers(self, state: WalkState, items: Sequence[Item]) -> list[float | None]:
        return [1.0] * len(items)

    async def score_actions(
        self, state: WalkState, replies: Sequence[Read], *, seed: int
    ) -> list[float | None]:
        """The grade that the environment gives to each reply. Raises ``ConfigError`` if it cannot
        grade."""
        graded = expert_of(state.environment)
        graded.restore(state.snapshot)
        return [float(graded.grade(action)) for _, action in replies]


def reply_text(action: Action, observation: Observation, rng: random.Random) -> str:
    """An action with a reason, in the form of an agent's reply."""
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
    if observation.app:
        yield Item("What is in front?", f'It is "{observation.app}".')
    fields = [_name(e) for e in observation.elements if e.editable]
    typed = f"{len(fields)}: {', '.join(fields)}." if fields else "There is none."
    yield Item("How many fields can be typed into, and which?", typed)
    on = [_name(e) for e in observation.elements if e.checked]
    if any(e.checked is not None for e in observation.elements):
        yield Item("What is switched on?", f"{', '.join(on) or 'Nothing'}.")


def about_elements(observation: Observation) -> Iterator[Item]:
    for element in uniquely_labelled(observation):
        name = label(element)
        where = f'Where is "{name}", and what kind of element is it?'
        yield Item(where, f"Element {element.index}, of the kind “{element.role}”.")
        if element.checked is not None:
            state = "It is on." if element.checked else "It is off."
            yield Item(f'Is "{name}" on or off?', state)
        if element.value:
            held = f'It says "{" ".join(element.value.split())}".'
            yield Item(f'What does "{name}" hold?', held)
        if element.editable:
            how = f"One types into element {element.index} with input_text."
            yield Item(f'With which action does one use "{name}"?', how)


def one_step(observation: Observation, rng: random.Random) -> Iterator[Item]:
    """Instructions of one step, with the correct action. ``rng`` draws wordings, texts and
    reasons."""
    for element in uniquely_labelled(observation):
        if not element.enabled:
            continue
        which = rng.randrange(3)
        for wordings, action in _acts(element, observation, rng):
            if observation.offers(action.action_type):
                said = wordings[which % len(wordings)]
                asked = said.format(label=label(element), text=action.text)
                yield Item(asked, reply_text(action, observation, rng))


def _acts(
    element: Element, observation: Observation, rng: random.Random
) -> Iterator[tuple[tuple[str, ...], Action]]:
    here = Action(action_type="click", target=element.label, index=element.index)
    if element.editable:
        words = _words(observation)
        typed = 'Type "{text}" into {label}', "Write {text} in {label}", "Fill {label} with {text}"
        yield typed, replace(here, action_type="input_text", text=rng.choice(words))
    elif element.checked is not None:
        wordings = ("Switch {label} on", "Make sure that {label} is on", "Turn on {label}")
        done = Action(action_type="status", goal_status="complete")
        yield wordings, done if element.checked else here
    elif element.clickable:
        yield ("Tap {label}", "Press “{label}”", "Click on {label}"), here
    if element.value:
        yield ("What does {label} say?",), Action(action_type="answer", text=element.value)


def _words(observation: Observation) -> list[str]:
    words = [w for e in observation.elements for w in e.label.split() if w.isalpha()]
    return words or ["hello"]


def _name(element: Element) -> str:
    return label(element) or f"element {element.index}"


def uniquely_labelled(observation: Observation) -> list[Element]:
    """Elements whose label no other element has."""
    times = Counter(element.label.casefold() for element in observation.elements)
    return [e for e in observation.elements if e.label.strip() and times[e.label.casefold()] == 1]


def label(element: Element) -> str:
    return " ".join(element.label.split())


def expert_of(environment: Environment) -> Graded:
    """The environment as one with an expert. Raises ``ConfigError`` if it has none."""
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"demonstrations and scripted roles need an environment with expert() and grade(); "
            f"{environment.name} has none. Use language models for the roles"
        )
    return environment
