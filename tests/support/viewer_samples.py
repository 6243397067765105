"""Episodes for the tests of the viewer: own views of the screen, prompts, and credit that falls."""

from __future__ import annotations

import io

import msgspec
from PIL import Image, ImageDraw

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.model import Dropped, Generation
from swarm_ui.observation import Element, Observation
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

TEAM = ("ada", "bob")
ORDERS: dict[str, tuple[int, ...] | None] = {"ada": None, "bob": (2, 0, 1)}
CREDIT = ((1.0, 0.5), (0.25, 0.0), (0.25, 0.25))
"""Of each step: one round, two agents. The mean falls at the second step only."""
SIZE = (100, 200)


def screenshot(step: int) -> bytes:
    """White, with a dark square at ``(20, 40 + 48 * step)`` of 16 by 16 pixels."""
    image = Image.new("RGB", SIZE, "white")
    top = 40 + 48 * step
    ImageDraw.Draw(image).rectangle((20, top, 35, top + 15), fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def screen(step: int, text: str) -> tuple[Element, ...]:
    """Three elements. From each step to the next, one is altered, one goes and one comes."""
    return (
        Element(index=0, role="button", text=f"Page {step} {text}", bounds=(0, 0, 100, 20)),
        Element(index=1, role="field", text="Name", value=f"{text} {step}", bounds=(0, 40, 100, 60),
                editable=True),
        Element(index=2, role="button", text="Save", bounds=(0, 180, 100, 200)),
    )  # fmt: skip


def decision(step: int, text: str, *, pictures: bool) -> Trace:
    """Both agents click "Save", element 2, which is 0 in the order of ``bob``."""
    action = Action(action_type="click", index=2)
    calls = []
    for name in TEAM:
        order = ORDERS[name]
        own = 2 if order is None else order.index(2)
        reply = f'{{"action_type":"click","index":{own}}} {text}'
        said = Message(id=f"{name}:0", sender=name, round=0, content=reply, action=action)
        made = Generation(prompt=f"Prompt of {name} in step {step}: {text}")
        calls.append(Call(message=said, completion=made, order=order))
    return Trace(
        run=f"run-{step}",
        seed=step,
        observation=Observation(
            goal=f"Save {text}",
            app=f"app {text}",
            elements=screen(step, text),
            png=screenshot(step) if pictures else None,
        ),
        agents=TEAM,
        rounds=1,
        calls=tuple(calls),
        ballot={action.json(): 2.0},
        action=action,
    )


def shuffled(text: str = "x", *, pictures: bool = False) -> Episode:
    """Three steps of two agents, of which ``bob`` sees the elements in an order of its own."""
    steps = tuple(
        StepRecord(trace=decision(k, text, pictures=pictures), credit=(CREDIT[k],), reward=0.0)
        for k in range(3)
    )
    return Episode(environment="e", task="save", seed=1, policy="team", steps=steps, success=False)


def windowed() -> Episode:
    """As :func:`shuffled`; ``bob`` sees only elements 0 and 1, and its prompt leaves out 1."""
    cut = Generation(prompt="Prompt of bob", dropped=Dropped(elements=(0,)))
    whole = shuffled()
    first = whole.steps[0]
    calls = tuple(
        msgspec.structs.replace(call, order=(1, 0), completion=cut)
        if call.node == "bob" else call
        for call in first.trace.calls
    )  # fmt: skip
    trace = msgspec.structs.replace(first.trace, calls=calls)
    return msgspec.structs.replace(whole, steps=(msgspec.structs.replace(first, trace=trace),))
