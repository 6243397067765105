"""What a prompt offers, how a reply becomes an action, and when two actions are equal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from cli_world import RIGHT, Lamp

from swarm_ui import Action, Decision, Element, Heard, Observation, Request
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, synthesize
from swarm_ui.prompts import FORMATS

KINDS = {
    "click", "double_tap", "long_press", "input_text", "select", "scroll", "swipe",
    "navigate_home", "navigate_back", "keyboard_enter", "open_app", "wait", "answer", "status",
}  # fmt: skip
PAGE = ("click", "input_text", "select", "scroll", "keyboard_enter")  # those of MiniWoB++
BUTTON = Element(index=0, role="button", text="Save")


def screen(*actions: str) -> Observation:
    made = Observation(goal="Save the note", elements=(BUTTON,))
    return msgspec.structs.replace(made, actions=actions)


# -- what prompts offer -----------------------------------------------------------------------


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("offered", [("click",), PAGE, ("answer", "status"), ("wait",)])
def test_a_prompt_offers_only_actions_of_the_screen(format: str, offered: Sequence[str]) -> None:
    chat = FORMATS[format].chat(Decision(observation=screen(*offered)))
    text = "\n".join(turn.content for turn in chat)
    named = {kind for kind in KINDS if f'"{kind}"' in text}
    assert named == (set(offered) if format == "json" else set())
    assert ("declare it" in text) == (format == "json" and "status" in offered)
    assert "open the right app" not in text


def test_a_screen_without_a_list_offers_every_action() -> None:
    system = FORMATS["json"].chat(Decision(observation=screen()))[0].content
    assert all(f'"action_type": "{kind}"' in system for kind in KINDS)
    assert "scroll, go back or open the right app" in system


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_constrained_replies_are_actions_of_the_screen(format: str) -> None:
    heard = tuple(
        Heard(sender="ada", round=0, content="", action=Action(action_type=kind, index=7, text="a"))
        for kind in ("long_press", "input_text", "click")
    )
    decision = Decision(observation=screen("click"), heard=heard, partial=True)
    replies = ["".join(map(str, reply)) for reply in FORMATS[format].replies(decision)]
    named = {kind for kind in KINDS for reply in replies if kind in reply}
    assert named == {"click"}
    assert any("7" in reply for reply in replies)


class Clicks(Lamp):
    """A lamp that offers clicks alone."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        screen = await super().reset(task=task, seed=seed)
        self._screen = msgspec.structs.replace(screen, actions=("click",))
        return self._screen


async def test_prompts_of_the_synthesis_name_only_actions_of_the_screen(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        assert request.chat is not None
        if "You judge" in request.chat[0].content:
            return '{"agent_0": 1, "agent_1": 1, "agent_2": 1, "agent_3": 1}'
        return f"Reason: it is asked for.\n{RIGHT}"

    model = ScriptedModel(reply)
    await synthesize(
        Clicks,
        Models(agent=model, adversary=model, critic=model),
        [("light", 0)],
        tmp_path / "corpus",
        held_out=HeldOut.of(tasks=["glow"]),
        config=CorpusConfig(questions=1, instructions=1, screens=1, first_screen=1.0),
    )
    systems = {r.chat[0].content for r in model.requests if r.chat is not None}
    told = {word: [s for s in systems if word in s] for word in ("write exercises", "write wrong")}
    assert all(len(found) == 1 for found in told.values()), sorted(systems)
    for system in (*told["write exercises"], *told["write wrong"]):
        named = [kind for kind in KINDS - {"click"} if f'"{kind}"' in system]
        named += [w for w in ("goal_status", "going back", "too early", "app_name") if w in system]
        assert named == []
