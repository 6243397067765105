"""A language model that is no model: it reads T3A's prompts and follows a script for the goal.

It knows only what upstream's prompt says: the goal and the elements of the screen.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

Act = dict[str, Any]
Script = Generator[Act, None, None]
SUMMARY = "Now I want you to summerize the latest step"
FIRST = "You just started, no action has been performed yet."
DONE: Act = {"action_type": "status", "goal_status": "complete"}


class Stuck(Exception):
    """The script expected something that is not on the screen."""


@dataclass(frozen=True)
class Seen:
    """An element as the prompt describes it."""

    index: int
    text: str
    description: str
    hint: str
    kind: str
    checked: bool
    checkable: bool
    scrollable: bool
    top: int


def read_elements(prompt: str) -> list[Seen]:
    """The elements of T3A's list."""
    found: list[Seen] = []
    for number, call in re.findall(r"^UI element (\d+): (UIElement\(.*\))$", prompt, re.MULTILINE):
        node = ast.parse(call, mode="eval").body
        assert isinstance(node, ast.Call)
        fields = {str(k.arg): k.value for k in node.keywords}
        box = fields["bbox_pixels"]
        assert isinstance(box, ast.Call)
        top = next(ast.literal_eval(k.value) for k in box.keywords if k.arg == "y_min")

        def literal(name: str, fields: dict[str, ast.expr] = fields) -> Any:
            return ast.literal_eval(fields[name])

        found.append(
            Seen(
                index=int(number),
                text=literal("text") or "",
                description=literal("content_description") or "",
                hint=literal("hint_text") or "",
                kind=(literal("class_name") or "").rpartition(".")[2],
                checked=bool(literal("is_checked")),
                checkable=bool(literal("is_checkable")),
                scrollable=bool(literal("is_scrollable")),
                top=int(top),
            )
        )
    return found


def read_goal(prompt: str) -> str:
    found = re.search(
        r"The current user goal/request is: (.*?)\n\nHere is a history", prompt, re.DOTALL
    )
    assert found is not None, "no goal in the prompt"
    return found.group(1)


class Player:
    """What a script sees, and the acts it is made of."""

    def __init__(self) -> None:
        self.goal = ""
        self.screen: list[Seen] = []
        self.notes: list[tuple[str, str]] = []
        """What a script has read and needs later."""

    def has(self, label: str) -> bool:
        return any(label in (one.text, one.description) for one in self.screen)

    def find(self, label: str, *, last: bool = False) -> Seen:
        """The element whose text or description is ``label``."""
        found = [one for one in self.screen if label in (one.text, one.description)]
        if not found:
            shown = ", ".join(one.text or one.description for one in self.screen)
            raise Stuck(f"no {label!r} among: {shown}")
        return found[-1 if last else 0]

    def field(self, hint: str) -> Seen:
        found = [one for one in self.screen if one.hint == hint and one.kind == "EditText"]
        if not found:
            raise Stuck(f"no field {hint!r}")
        return found[0]

    def beside(self, label: str) -> str:
        """The text below ``label`` in the same row."""
        at = self.screen.index(self.find(label))
        return self.screen[at + 1].text

    def open(self, app: str) -> Script:
        yield {"action_type": "open_app", "app_name": app}

    def tap(self, label: str, *, last: bool = False) -> Script:
        yield {"action_type": "click", "index": self.find(label, last=last).index}

    def long_press(self, label: str) -> Script:
        yield {"action_type": "long_press", "index": self.find(label).index}

    def write(self, hint: str, text: str, *, clear: bool = False) -> Script:
        act = {"action_type": "input_text", "text": text, "index": self.field(hint).index}
        yield {**act, "clear_text": True} if clear else act

    def scroll(self, direction: str = "down") -> Script:
        """Move the list; :class:`Stuck` at its end."""
        if not any(one.scrollable for one in self.screen):
            raise Stuck("nothing scrolls")
        before = self.screen
        yield {"action_type": "scroll", "direction": direction}
        if before == self.screen:
            raise Stuck("the end of the list")

    def reach(self, label: str) -> Script:
        """Scroll down until ``label`` is seen."""
        while not self.has(label):
            yield from self.scroll()

    def back(self) -> Script:
        yield {"action_type": "navigate_back"}

    def answer(self, text: str) -> Script:
        yield {"action_type": "answer", "text": text}

    def pages(self, look: Callable[[], None]) -> Script:
        """Call ``look`` on each page of a list."""
        while True:
            look()
            try:
                yield from self.scroll()
            except Stuck:
                return


Scripts = list[tuple[str, Callable[[Player, "re.Match[str]"], Script]]]


class Sabotage:
    """Spoils a script. It also counts the acts, and those of them that carry a text.

    Args:
        stop: number of the act in place of which the task is declared done.
        spoil: number of the text to spoil.
        how: what becomes of that text.
    """

    def __init__(
        self, stop: int = 0, spoil: int = 0, how: Callable[[str], str] = lambda text: text
    ) -> None:
        self.acts = self.texts = 0
        self._stop, self._spoil, self._how = stop, spoil, how

    def __call__(self, act: Act) -> Act:
        self.acts += 1
        if "text" in act:
            self.texts += 1
            if self.texts == self._spoil:
                act = {**act, "text": self._how(act["text"])}
        return DONE if self.acts == self._stop else act


def misspelt(text: str) -> str:
    """The text with another letter or digit in place of its first."""
    found = re.search(r"[A-Za-z0-9]", text)
    assert found is not None
    letter = found[0]
    wrong = str((int(letter) + 1) % 10) if letter.isdigit() else "QZ"[letter in "Qq"]
    wrong = wrong if letter < "a" else wrong.lower()
    return f"{text[: found.start()]}{wrong}{text[found.end() :]}"


class ScriptedLlm:
    """Stands in for upstream's ``LlmWrapper``."""

    def __init__(self, scripts: Scripts, sabotage: Sabotage | None = None) -> None:
        self._scripts = scripts
        self._sabotage = sabotage or Sabotage()
        self._player = Player()
        self._script: Script | None = None
        self.stuck: dict[str, str] = {}
        """Goal -> why its script gave up."""

    def predict(self, text_prompt: str) -> tuple[str, bool | None, Any]:
        if SUMMARY in text_prompt:
            return "ok", None, {"scripted": True}
        self._player.screen = read_elements(text_prompt)
        if FIRST in text_prompt:
            self._player.goal = read_goal(text_prompt)
            self._script = self._choose()
        act = self._next()
        return f"Reason: the script says so.\nAction: {json.dumps(act)}", None, {"scripted": True}

    def _choose(self) -> Script:
        for pattern, script in self._scripts:
            found = re.fullmatch(pattern, self._player.goal, re.DOTALL)
            if found is not None:
                return script(self._player, found)
        raise AssertionError(f"no script for the goal: {self._player.goal}")

    def _next(self) -> Act:
        assert self._script is not None
        try:
            return self._sabotage(next(self._script))
        except StopIteration:
            return DONE
        except Stuck as stuck:
            self.stuck[self._player.goal] = str(stuck)
            return {"action_type": "status", "goal_status": "infeasible"}
