"""Wrappers: environments that add one feature to another environment.

They nest in any order, and keep the snapshots and grades of the inner environment::

    env = Confirm(ActionFilter(PhoneEnvironment(), deny=(PAYMENT, DELETION)), ask)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step, checker_version
from swarm_ui.environments.base import ready
from swarm_ui.environments.spelling import contains_word
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation, Past

__all__ = [
    "DELETION", "PAYMENT", "SENDING", "ActionFilter", "Ask", "Confirm", "Question", "Rule",
    "Wrapper",
]  # fmt: skip

Match = tuple[str, str]
"""The name of a rule that applies to an action, and why."""

HOME = ("home", "*launcher*")
"""Names of home screens, which every allow-list of apps includes."""
_WAIT = Action(action_type="wait")
_PRESSES = frozenset({"click", "double_tap", "long_press", "select", "swipe", "input_text",
                      "keyboard_enter"})  # fmt: skip
"""Kinds of actions that press the element at their place; typing clicks on it first."""
_ENTER_KEYS = ("ENTER", "DPAD_CENTER", "SPACE")
_LEAVES = frozenset({"navigate_back", "navigate_home", "open_app", "wait", "status", "answer"})
"""Actions that are possible in a refused app."""


class Wrapper:
    """Passes all calls on to ``env``.

    A wrapper has ``snapshot`` and ``restore`` only if the inner environment is
    :class:`Restorable`, and ``expert`` and ``grade`` only if it is :class:`Graded`, so
    ``isinstance`` gives the same answer for both. A subclass that changes them defines
    ``_snapshot``, ``_restore``, ``_expert`` or ``_grade``. ``start`` is passed on too.
    """

    def __init__(self, env: Environment) -> None:
        self.env: Any = env
        # Set on the object, because they depend on ``env``.
        for kind, names in ((Restorable, ("snapshot", "restore")), (Graded, ("expert", "grade"))):
            if isinstance(env, kind):
                vars(self).update({n: getattr(self, f"_{n}", getattr(env, n)) for n in names})
        if hasattr(env, "start") and not hasattr(self, "start"):  # it runs in its own process
            vars(self).update(start=env.start)

    @property
    def name(self) -> str:
        return str(self.env.name)

    @property
    def checker(self) -> int:
        return checker_version(self.env)

    @property
    def tasks(self) -> Sequence[str]:
        tasks: Sequence[str] = self.env.tasks
        return tasks

    @property
    def innermost(self) -> Environment:
        """The environment without any wrapper."""
        env: Environment = self.env
        while isinstance(env, Wrapper):
            env = env.env
        return env

    async def reset(self, *, task: str, seed: int) -> Observation:
        screen: Observation = await self.env.reset(task=task, seed=seed)
        return screen

    async def step(self, action: Action) -> Step:
        step: Step = await self.env.step(action)
        return step

    async def close(self) -> None:
        await self.env.close()


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Words that make an action match, in any spelling.

    A star matches any ending: ``"delet*"``. For the spellings that count as the same word see
    :mod:`swarm_ui.environments.spelling`. In doubtful cases a word matches.
    """

    name: str
    """Name of the rule, shown in the note of a refusal."""
    words: tuple[str, ...]
    """Words on the element that is pressed (click, taps, select, Enter, or typing into an element
    that is no field)."""

    def word_in(self, text: str) -> str:
        """The first word that occurs in ``text``, or an empty string."""
        return next((word for word in self.words if contains_word(word, text)), "") if text else ""


def _rule(name: str, words: str) -> Rule:
    return Rule(name=name, words=tuple(words.split(", ")))


PAYMENT = _rule(
    "payment",
    "pay, pays, payment*, buy, purchas*, checkout, order now, place order, confirm order, "
    "subscribe, donat*, transfer money, send money, top up, book now, rent now, add card, "
    "withdraw*, 💳, 💸, 💰",
)
DELETION = _rule(
    "deletion",
    "delet*, remov*, eras*, wipe*, clear all, clear data, empty trash, trash, factory reset, "
    "reset phone, uninstall*, discard*, format, 🗑, empty bin, move to bin, close account, unlink, "
    "destroy*, purg*",
)
SENDING = _rule(
    "sending",
    "send, sends, resend, reply all, forward, post, publish*, share, tweet, submit*, broadcast*, "
    "call, dial, 📤, ✉, 📨, 📞",
)


def first_match(rules: Sequence[Rule], action: Action, screen: Observation) -> Match | None:
    """The first rule that applies to an action on a screen. A click on an editable element is
    harmless."""
    pressed = [*_meant(action, screen), *_entered(action, screen)]
    texts = [
        (f"“{element.label}”", text)
        for element in pressed
        if not element.editable
        for text in (element.text, element.description, element.hint, element.value or "")
    ]
    if action.action_type == "select":
        texts.append((f"the option “{action.text}”", action.text or ""))
    for rule in rules:
        for said, text in texts:
            if word := rule.word_in(text):
                return rule.name, f"{said} matches “{word}”"
    return None


class _Refusing(Wrapper):
    """Calls :meth:`refusal` before each action; a refused action is a lost step with a note.

    Instead of a refused action the environment gets ``wait``, so that it counts the lost step. The
    history shows the refused action.
    """

    present: Observation | None = None
    """The screen of the running episode; ``None``: no episode is running."""
    _taken: tuple[int, Mapping[int, Past]] = (0, {})
    """Number of actions, and the refused ones by their places in the history."""

    def refusal(self, action: Action, screen: Observation) -> str | Awaitable[str]:
        """Why an action is refused on a screen, or an empty string."""
        raise NotImplementedError

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.present, self._taken = None, (0, {})
        self.present = await super().reset(task=task, seed=seed)
        return self.present

    async def step(self, action: Action) -> Step:
        screen = self.present
        if screen is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        why = await ready(self.refusal(action, screen))
        done, refused = self._taken
        self._taken = done + 1, {**refused, done: screen.past(action)} if why else refused
        self.present = None  # there is no episode until the environment has answered
        step = await super().step(_WAIT if why else action)
        shown = self._shown(step.observation)
        self.present = None if step.ended else shown
        return replace(step, observation=shown, note=why or step.note)

    async def close(self) -> None:
        self.present = None
        await super().close()

    def _shown(self, screen: Observation) -> Observation:
        past = list(screen.history)
        for place, refused in self._taken[1].items():
            if place < len(past) and past[place].action == _WAIT:
                past[place] = refused
        return replace(screen, history=tuple(past))

    def _snapshot(self) -> object:
        return self._taken, self.present, self.env.snapshot()

    def _restore(self, state: Any) -> Observation:
        taken, present, inner = state
        screen = self.env.restore(inner)
        self._taken, self.present = taken, present
        return self._shown(screen)


class ActionFilter(_Refusing):
    """Refuses actions by rules. A refused action does not reach the environment; the step is lost.

    The note of the step names the rule and the reason. Words match in any spelling (case,
    accents, look-alike letters, spacing, invisible characters). Names of allowed apps must be
    exact, so a look-alike of an allowed name is not allowed. Clicks by pixels and Enter
    are judged by the elements that they would press. Only text can be judged: a picture of the
    word “Pay” without a text is not recognized.

    Args:
        env: the environment.
        deny: the rules for refused actions.
        apps: the only allowed apps, as ``Observation.app`` and icons name them (``*`` and ``?``
            as in file names). Home screens are always allowed. In another app, or on a screen
            without an app's name, the agent can only leave.
    """

    def __init__(
        self,
        env: Environment,
        *,
        deny: Sequence[Rule] = (PAYMENT, DELETION),
        apps: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        self._deny = tuple(deny)
        self._apps = None if apps is None else tuple(_exact(app) for app in (*apps, *HOME))

    def refusal(self, action: Action, screen: Observation) -> str:
        """Why an action is refused on a screen, or an empty string."""
        found = first_match(self._deny, action, screen) or self._other_app(action, screen)
        return f"refused by the rule '{found[0]}': {found[1]}; nothing was done" if found else ""

    def _expert(self) -> Action:
        action: Action = self.env.expert()
        if self.present and (why := self.refusal(action, self.present)):
            raise ConfigError(f"{self.name}: this task cannot be done under the filter: {why}")
        return action

    def _grade(self, action: Action) -> float:
        refused = self.present and self.refusal(action, self.present)
        return 0.0 if refused else float(self.env.grade(action))

    def _other_app(self, action: Action, screen: Observation) -> Match | None:
        if self._apps is None:
            return None
        opened = _opened(action, screen)
        if opened and not self._allowed(opened):
            return "apps", f"“{opened}” is not an allowed app"
        if action.action_type in _LEAVES or self._allowed(screen.app):
            return None
        where = f"“{screen.app}” is in front" if screen.app else "the screen names no app"
        return "apps", f"{where}, and is not an allowed app; go back or home"

    def _allowed(self, app: str) -> bool:
        return any(fnmatchcase(_exact(app), allowed) for allowed in self._apps or ())


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An action to confirm, and the reason for the question."""

    action: Action
    screen: Observation
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.screen.goal}\n{self.action} ({self.rule}: {self.why})"


Ask = Callable[[Question], Awaitable[bool]]


class Confirm(_Refusing):
    """Asks before actions that match a rule. Without a confirmation the step is lost.

    Args:
        env: the environment.
        ask: returns true to allow the action, however long that takes. If it raises, the action is
            not done.
        rules: the actions to ask about; ``None``: all.
    """

    def __init__(
        self,
        env: Environment,
        ask: Ask,
        *,
        rules: Sequence[Rule] | None = (PAYMENT, DELETION, SENDING),
    ) -> None:
        super().__init__(env)
        self._ask, self._rules = ask, rules

    async def refusal(self, action: Action, screen: Observation) -> str:
        match: Match | None = "every action", "all actions are asked about"
        if self._rules is not None:
            match = first_match(self._rules, action, screen)
        if match is None:
            return ""
        rule, why = match
        allowed = await self._ask(Question(action=action, screen=screen, rule=rule, why=why))
        return "" if allowed is True else f"not confirmed ({rule}): nothing was done"


def _exact(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


def _meant(action: Action, screen: Observation) -> Iterator[Element]:
    """The elements that an action may press: at its place, and at the end of a swipe. A click by
    pixels may press every element whose place is not known."""
    if action.action_type not in _PRESSES:
        return
    ends = ((action.index, action.x, action.y), (action.to_index, action.to_x, action.to_y))
    for index, x, y in ends:
        target = screen.element(index)
        if target is not None:
            yield target
            if target.bounds is not None:
                left, top, right, bottom = target.bounds
                x, y = (left + right) // 2, (top + bottom) // 2
        if x is None or y is None:
            continue
        for element in screen.elements:
            left, top, right, bottom = element.bounds or (0, 0, -1, -1)
            pressed = element.clickable and element.role != "dialog" and not element.scrollable
            if pressed and left <= x <= right and top <= y <= bottom:
                yield element
    if action.x is not None or action.to_x is not None:
        yield from (element for element in screen.elements if element.bounds is None)


def _entered(action: Action, screen: Observation) -> Iterator[Element]:
    """The elements that Enter, or another key that activates an element, may press: those in focus
    and, if a field or nothing is in focus, all buttons. A line break in a text is an Enter."""
    kind, key = action.action_type, (action.keycode or "").upper()
    breaks = kind == "input_text" and {"\n", "\r"} & set(action.text or "")
    if not (kind == "keyboard_enter" or breaks or any(one in key for one in _ENTER_KEYS)):
        return
    focused = [element for element in screen.elements if element.focused]
    yield from focused
    if not focused or any(element.editable for element in focused):
        yield from (e for e in screen.elements if e.role in ("button", "link", "icon", "image"))


def _opened(action: Action, screen: Observation) -> str:
    """The name of the app that an action opens, or an empty string."""
    if action.action_type == "open_app":
        return action.app_name or ""
    icons = [e.label for e in _meant(action, screen) if e.role == "app"]
    return icons[0] if icons else ""
