"""Made-up Mind2Web records, and episodes played without a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swarm_ui import Action, Episode, Observation, StepRecord, Trace
from swarm_ui.environments.recorded.teacher_forced import RecordedBenchmark, TeacherForced
from swarm_ui.errors import Failure

Answer = Callable[[Observation], Action]


def record(
    op: str, value: str, pos: Sequence[int], neg: Sequence[int], *, tag: str = "button"
) -> dict[str, Any]:
    """A raw action whose page shows each node with its number as text, such as ``n7``."""

    def candidate(node: int) -> dict[str, Any]:
        return {"tag": tag, "attributes": "{}", "backend_node_id": str(node)}

    nodes = sorted([*pos, *neg])
    body = "".join(
        f'<{tag} backend_node_id="{n}"><text backend_node_id="9{n}">n{n}</text></{tag}>'
        for n in nodes
    )
    return {
        "action_uid": "u",
        "raw_html": "<html/>",
        "cleaned_html": f'<html backend_node_id="0">{body}</html>',
        "operation": {"op": op, "original_op": op, "value": value},
        "pos_candidates": [candidate(n) for n in pos],
        "neg_candidates": [candidate(n) for n in neg],
    }


def task(name: str, actions: Sequence[dict[str, Any]], goal: str = "Do it.") -> dict[str, Any]:
    return {
        "annotation_id": name,
        "website": "site",
        "domain": "d",
        "subdomain": "s",
        "confirmed_task": goal,
        "action_reprs": [f"[button]  step {k} -> CLICK" for k in range(len(actions))],
        "actions": [{**a, "action_uid": f"{name}-{k}"} for k, a in enumerate(actions)],
    }


def write(folder: Path, tasks: Sequence[dict[str, Any]], name: str = "test_task_0.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def on(label: str, kind: str = "click", text: str | None = None) -> Answer:
    """An answer that points at the element with a label."""

    def answer(screen: Observation) -> Action:
        index = next(e.index for e in screen.elements if e.label == label)
        return Action(action_type=kind, index=index, text=text)  # type: ignore[arg-type]

    return answer


def always(action: Action) -> Answer:
    return lambda screen: action


def play(
    data: RecordedBenchmark[Any], name: str, answers: Sequence[Answer], *, fault: str | None = None
) -> Episode:
    """An episode in which these answers are given; it may stop before its end."""

    async def run() -> Episode:
        env = TeacherForced(data)
        screen = await env.reset(task=name, seed=0)
        steps: list[StepRecord] = []
        for answer in answers:
            action = answer(screen)
            step = await env.step(action)
            trace = Trace(run="r", seed=0, observation=screen, agents=("a",), rounds=1)
            steps.append(
                StepRecord(
                    trace=trace,
                    executed=action,
                    reward=step.reward,
                    terminated=step.terminated,
                    truncated=step.truncated,
                    note=step.note,
                )
            )
            screen = step.observation
        return Episode(
            environment=env.name,
            task=name,
            seed=0,
            steps=tuple(steps),
            success=None if fault else bool(steps) and steps[-1].reward == 1.0,
            fault=Failure(kind="environment", message=fault) if fault else None,
        )

    return asyncio.run(run())
