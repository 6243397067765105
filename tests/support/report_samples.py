"""Runs and episodes for the tests of reports, filled with whatever text a test wants to smuggle
in."""

from __future__ import annotations

import io
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from PIL import Image, ImageDraw

from swarm_ui.action import Action
from swarm_ui.errors import Failure
from swarm_ui.message import Message
from swarm_ui.model import Dropped, Generation
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.report import ArmResult, Cost, Results, write_report
from swarm_ui.storage.run_directory import RunDirectory
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
    calls = []
    for r, name in itertools.product(range(3), AGENTS):
        error = f"no answer: {text}" if (name, r) == ("agent_4", 0) else None
        message = Message(
            id=f"{name}:{r}", sender=name, round=r, error=error,
            content=f"The form is open, so next comes {text}.",
            action=action if rng.random() < 0.7 else other,
        )  # fmt: skip
        made = Generation(prompt="", adapter=f"{name}@3")
        calls.append(Call(message=message, completion=made, heard=("agent_1:0",)))
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
        calls=tuple(calls),
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


TEAM = ("ada", "bob")
CREDIT = ((1.0, 0.5), (0.25, 0.0), (0.25, 0.25))
"""Of each step of :func:`shuffled`: one round, two agents. The mean falls at the second step."""


def shuffled(text: str = "x", *, pictures: bool = False) -> Episode:
    """Three steps of two agents, both of which click "Save", element 2. ``bob`` sees the elements
    in an order of its own, in which that is 0."""
    return Episode(
        environment="e", task="save", seed=1, policy="team", success=False,
        steps=tuple(
            StepRecord(trace=_saving(k, text, pictures), credit=(CREDIT[k],)) for k in range(3)
        ),
    )  # fmt: skip


def _saving(step: int, text: str, pictures: bool) -> Trace:
    elements = (
        Element(index=0, role="button", text=f"Page {step} {text}", bounds=(0, 0, 100, 20)),
        Element(index=1, role="field", text="Name", value=f"{text} {step}", bounds=(0, 40, 100, 60),
                editable=True),
        Element(index=2, role="button", text="Save", bounds=(0, 180, 100, 200)),
    )  # fmt: skip
    action = Action(action_type="click", index=2)
    calls = []
    for name, own, order in (("ada", 2, None), ("bob", 0, (2, 0, 1))):
        reply = f'{{"action_type":"click","index":{own}}} {text}'
        said = Message(id=f"{name}:0", sender=name, round=0, content=reply, action=action)
        made = Generation(prompt=f"Prompt of {name} in step {step}: {text}")
        calls.append(Call(message=said, completion=made, order=order))
    shown = Observation(goal=f"Save {text}", app=f"app {text}", elements=elements,
                        png=png(str(step)) if pictures else None)  # fmt: skip
    return Trace(run=f"run-{step}", seed=step, observation=shown, agents=TEAM, rounds=1,
                 calls=tuple(calls), ballot={action.json(): 2.0}, action=action)  # fmt: skip


def windowed() -> Episode:
    """The first step of :func:`shuffled`; ``bob`` sees only elements 0 and 1, and its prompt
    leaves out 1."""
    cut = Generation(prompt="Prompt of bob", dropped=Dropped(elements=(0,)))
    (first, *_) = shuffled().steps
    ada, bob = first.trace.calls
    calls = (ada, msgspec.structs.replace(bob, order=(1, 0), completion=cut))
    trace = msgspec.structs.replace(first.trace, calls=calls)
    return msgspec.structs.replace(shuffled(), steps=(msgspec.structs.replace(first, trace=trace),))


def arm(split: str, label: str, outcomes: Sequence[float | None], **other: object) -> ArmResult:
    jobs = tuple((("add", "edit")[k % 2], k) for k in range(len(outcomes)))
    return ArmResult(split=split, label=label, jobs=jobs, outcomes=tuple(outcomes),
                     **other)  # type: ignore[arg-type]  # fmt: skip


def iteration(k: int, **more: object) -> dict[str, object]:
    return {"kind": "iteration", "iteration": k, "success": 0.5 + 0.25 * k, "episodes": 5,
            "masked": 1, "credit": 0.6, "rollout_seconds": 4.0, "update_seconds": 2.0,
            "cpu_seconds": 5.0, "graphs": [], "loss/a": 0.5, **more}  # fmt: skip


def full_run(folder: Path, text: str = "Ada") -> Path:
    """A run that trained and was tested, with every part of a report."""
    safe = text if text.isprintable() else "odd"
    run = RunDirectory.create(folder, name=safe, config={"seed": 7, "team": {"words": safe}})
    run.write_episodes(
        "test", [episode(text), episode(text, success=False), episode(text, success=None)]
    )
    for k in range(3):
        edges = {
            "edge/agent_1>agent_2": 0.25 + 0.25 * k,
            f"edge/{AGENTS[3]}>agent_1": 0.5 - 0.2 * k,
        }
        run.log(iteration(k, **edges, success=0.5))
        run.log({"kind": "credit", "iteration": k, "agents": [f"a {text}", "b"],
                 "values": [[0.5, None], [0.75, 0.6 + k / 10]]})  # fmt: skip
    work = Cost(decisions=5, calls=7, prompt_tokens=90, completion_tokens=9, seconds=1.5)
    results = Results(labels=("phone: simulated", text))
    for split in ("new", "known"):
        failures = (None, None, "loop", "other", None, None)
        results.arms += [
            arm(split, f"one {text}", [1.0, 0.0, 0.0, None, 1.0, 1.0], work=work),
            arm(
                split, f"team {text}", [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], work=work, failures=failures
            ),
        ]
    results.save(run.path)
    return run.path


def written(
    folder: Path, sets: Mapping[str, Sequence[Episode]] | Sequence[Episode], to: str = "report.html"
) -> Path:
    """The report of a run of these episodes, with their screenshots."""
    named = sets if isinstance(sets, Mapping) else {"test": sets}
    run = RunDirectory.create(folder / "run", config={})
    for name, episodes in named.items():
        run.write_episodes(name, episodes)
    given = {encoded(one): one for episodes in named.values() for one in episodes}
    return write_report(
        run.path, to=run.path / to, illustrate=lambda one: given.get(encoded(one), one)
    )


def encoded(one: Episode) -> str:
    """An episode as a trace file holds it: without screenshots."""
    return json.dumps(json.loads(msgspec.json.encode(one)), sort_keys=True)
