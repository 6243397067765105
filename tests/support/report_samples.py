"""Reports for the tests, filled with whatever text a test wants to smuggle in."""

from __future__ import annotations

import io
import random

from PIL import Image, ImageDraw

from swarm_ui.action import Action
from swarm_ui.errors import Failure
from swarm_ui.message import Message
from swarm_ui.model import Generation
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.report import (
    Curve,
    CurvePoint,
    EdgeFrame,
    EdgeHistory,
    Estimate,
    GraphDrawing,
    Picture,
    ReportData,
    ReportTable,
    Series,
    credit_map,
)
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

AGENTS = ("agent_1", "agent_2", "agent_3", "agent_4")


def png(text: str = "plot") -> bytes:
    image = Image.new("RGB", (270, 480), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((30, 90, 240, 150), outline="black")
    draw.text((40, 100), text, fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def trace(text: str, step: int, rng: random.Random, picture: bytes | None = None) -> Trace:
    elements = (
        Element(index=0, role="heading", text="Contacts", clickable=False),
        Element(index=1, role="button", text=text, bounds=(30, 90, 240, 150)),
        Element(index=2, role="field", hint="Name", value=text, editable=True, focused=True),
        Element(index=3, role="switch", text="Favourite", checked=True),
        Element(index=4, role="text", text="Ada Lovelace, 555 0100", clickable=False),
        Element(index=5, role="item", text="Grace Hopper", description="contact"),
    )
    action = Action(action_type="click", index=1)
    other = Action(action_type="input_text", index=2, text=text)
    messages = tuple(
        Message(
            id=f"{name}:{r}",
            sender=name,
            round=r,
            content=f"The form is open, so next comes {text}.",
            action=action if rng.random() < 0.7 else other,
            error=f"no answer: {text}" if (name, r) == ("agent_4", 0) else None,
        )
        for r in range(3)
        for name in AGENTS
    )
    calls = tuple(
        Call(
            message=message,
            completion=Generation(prompt="", adapter=f"{message.sender}@3"),
            heard=("agent_1:0",),
        )
        for message in messages
    )
    return Trace(
        run=f"run-{step}",
        seed=step,
        observation=Observation(
            goal=f"Add a contact named {text}",
            app=f"Contacts {text}",
            elements=elements,
            history=(Past(action=other, role="field", label="Name"),),
            png=picture,
        ),
        agents=AGENTS,
        rounds=3,
        edges=(("agent_1", "agent_2"),),
        calls=calls,
        ballot={action.json(): 2.5, other.json(): 1.0, text: 0.5},
        action=action,
    )


def episode(text: str, *, success: bool | None = True, picture: bytes | None = None) -> Episode:
    rng = random.Random(7)
    steps = tuple(
        StepRecord(
            trace=trace(text, k, rng, picture),
            reward=1.0 if k == 2 and success else 0.0,
            terminated=k == 2,
            note=text if k == 1 else "",
            credit=tuple(
                tuple(None if (r, a) == (0, 3) else round(rng.random(), 2) for a in range(4))
                for r in range(3)
            ),
            credit_source=f"LLM critic ({text})",
            rationale=tuple(f"In round {r} {text} was said." for r in range(3)),
        )
        for k in range(3)
    )
    return Episode(
        environment="phone (simulated)",
        task=f"contacts-add {text}",
        seed=7,
        policy=f"trained team {text}",
        steps=steps,
        success=success,
        fault=None if success is not None else Failure(kind="environment", message=text),
    )


def report(text: str = "Ada") -> ReportData:
    episodes = (
        episode(text),
        episode(text, success=False, picture=png()),
        episode(text, success=None),
    )
    credit = credit_map(episodes, title=f"Mean credit {text}")
    assert credit is not None
    return ReportData(
        title=f"A team learns to operate a phone {text}",
        summary="Four agents talked for three rounds on a directed acyclic graph, a critic gave "
        f"credit to every message, and each agent's adapter was trained. {text}",
        labels=("phone: simulated", "critic: scripted", text),
        facts=(("command", f"python demos/androidworld_swarm.py {text}"), ("seed", "7")),
        tables=(_results(text),),
        curves=(_curve(text),),
        heat_maps=(credit,),
        graphs=tuple(_drawing(text, k) for k in range(4)),
        pictures=(Picture(title=f"Success by task {text}", png=png(), note=text),),
        episodes=episodes,
        edge_histories=(history(text),),
        missing=(f"Nothing but {text}",),
    )


def history(text: str = "Ada") -> EdgeHistory:
    """Three iterations, in which ``agent_1 → agent_2`` becomes likely."""
    last = f"agent_4{text if text.startswith('<') else ''}"
    frames = tuple(
        EdgeFrame(
            label=f"iteration {k + 1}",
            edges=(("agent_1", "agent_2", 0.25 + 0.25 * k), (last, "agent_1", 0.5 - 0.2 * k)),
        )
        for k in range(3)
    )
    return EdgeHistory(
        title=f"Edge probabilities {text}", nodes=(*AGENTS[:3], last), frames=frames, note=text
    )


def _results(text: str) -> ReportTable:
    rows = (("base", 0.61, None), ("base ×4", 0.64, 0.03), (f"trained {text}", 0.81, 0.2))
    return ReportTable(
        title=f"Held-out tasks {text}",
        columns=("policy", "success, %", "against base, points", "calls a step"),
        rows=tuple(
            (
                name,
                Estimate(value=p, low=p - 0.06, high=p + 0.05, count=200),
                None
                if d is None
                else Estimate(value=d, low=d - 0.05, high=d + 0.05, difference=True),
                12 if "base" not in name else 1,
            )
            for name, p, d in rows
        ),
        note=f"Simulated phone; these are not AndroidWorld scores. {text}",
    )


def _curve(text: str) -> Curve:
    lines = tuple(
        Series(
            name=f"{name} {text}",
            points=tuple(
                CurvePoint(k, 0.5 + 0.08 * k - lag, 0.44 + 0.08 * k - lag, 0.57 + 0.08 * k - lag)
                for k in range(5)
            ),
        )
        for name, lag in (("team", 0.0), ("greedy", 0.09))
    )
    return Curve(
        title=f"Success per iteration {text}", x_label="iteration", y_label="success", series=lines
    )


def _drawing(text: str, iteration: int) -> GraphDrawing:
    names = (*AGENTS[:3], f"agent_4{text if text.startswith('<') else ''}")
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    edges = tuple(random.Random(iteration).sample(pairs, 4))
    return GraphDrawing(
        title=f"iteration {iteration} {text}",
        nodes=names,
        edges=edges,
        weights=(1.0, 0.8, 0.5, 0.2),
    )
