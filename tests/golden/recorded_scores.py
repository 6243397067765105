"""Scores of drawn replies to the synthetic tasks of Mind2Web and AutoWebBench, and of drawn calls.

``python tests/golden/recorded_scores.py`` records them again, in ``recorded_scores.json``.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from behaviour import digest
from msgspec.structs import replace

from swarm_ui import Action, Episode, Observation, StepRecord, Trace
from swarm_ui.environments.recorded import autowebbench, autowebbench_scores, mind2web
from swarm_ui.environments.recorded.scores import Scores, measured

FILE = Path(__file__).with_name("recorded_scores.json")
TEXTS = ("", "3", "San Diego", "san diego ", "上海 is big", "a b\nc", "d'Or", "None")
FUNCTIONS = (*("click", "hover", "select", "type_string", "scroll_page", "go", "jump_to"),
             *("switch_tab", "user_input", "finish", "dance"))  # fmt: skip


def drawn_action(draw: random.Random, screen: Observation, right: Action) -> Action:
    """The right action, or one that is nearly right, or any."""
    number = draw.randrange(len(screen.elements) + 2)
    text, way = draw.choice(TEXTS), draw.choice(("up", "down", "left"))
    others = (
        Action(action_type="click", index=number),
        Action(action_type="input_text", index=number, text=text),
        Action(action_type="select", index=number, text=text),
        Action(action_type="long_press", index=number),
        Action(action_type="scroll", direction=way),  # type: ignore[arg-type]
        Action(action_type="answer", text=text),
        Action(action_type="status", goal_status=draw.choice(("complete", "infeasible"))),
        Action(action_type="open_app", app_name=text or "x"),
        Action(action_type="navigate_back"),
        Action(action_type="wait"),
        Action(action_type="click", x=1, y=2),
    )
    if draw.random() < 0.6:
        return right
    if draw.random() < 0.3 and right.text is not None:
        return replace(right, text=text)
    return draw.choice(others)


async def drawn_episode(recordings: Any, task: str, seed: int) -> tuple[Episode, list[bytes]]:
    """An episode of drawn actions (with seed 0: of the right ones), and everything it shows."""
    world, draw = recordings.environment(), random.Random(f"{task}/{seed}")
    screen = await world.reset(task=task, seed=0)
    steps: list[StepRecord] = []
    seen = [msgspec.json.encode(screen)]
    ended = False
    while not ended:
        right = world.expert()
        action = drawn_action(draw, screen, right) if seed else right
        grade = world.grade(action)
        step = await world.step(action)
        trace = Trace(run="r", seed=0, observation=screen, agents=("a",), rounds=1, action=action)
        steps.append(
            StepRecord(
                trace=trace,
                executed=action,
                reward=step.reward,
                terminated=step.terminated,
                truncated=step.truncated,
            )
        )
        screen, shown = step.observation, step
        if seed:  # what is listed of a lost action is not part of the benchmark
            shown = replace(step, observation=replace(screen, history=()))
        seen.append(msgspec.json.encode((grade, action, shown)))
        ended = step.ended or (seed > 0 and draw.random() < 0.03)
    solved = steps[-1].reward == 1.0
    found = Episode(environment="x", task=task, seed=0, steps=tuple(steps), success=solved)
    return found, seen


async def played(recordings: Any, attempts: int = 12) -> tuple[dict[str, Any], str]:
    """The scores of drawn episodes, and a digest of what was shown in them."""
    episodes, shown = [], []
    for task in recordings.tasks:
        for seed in range(attempts):
            episode, seen = await drawn_episode(recordings, task, seed)
            episodes.append(episode)
            shown += seen
    scores: dict[str, Any] = msgspec.to_builtins(recordings.score(episodes, resamples=200))
    return scores, digest(shown)


def benchmarks() -> Iterator[tuple[str, Any]]:
    for flattened in (False, True):
        root = mind2web.synthetic(flattened=flattened)
        for split in ("test_task", "test_website", "test_domain"):
            for top_k in (None, 5):
                name = f"mind2web {split} {flattened} {top_k}"
                yield name, mind2web.Mind2Web(root, split, top_k=top_k)  # type: ignore[arg-type]
    for split in autowebbench.SPLITS:
        root = autowebbench.synthetic()
        yield f"autowebbench {split}", autowebbench.AutoWebBench(root, split)  # type: ignore[arg-type]


def drawn_call(draw: random.Random) -> str:
    """A call, whole or broken."""
    words = [repr(draw.choice(TEXTS)) for _ in range(draw.randrange(4))]
    if draw.random() < 0.1:
        words.append(draw.choice(("SD", "1", "len('x')", "k=2", "'", "[1]", "False")))
    call = f"{draw.choice(FUNCTIONS)}({', '.join(words)})"
    before = draw.choice(("", "", "A: ", "I think so. A: ", " "))
    return before + (call[: draw.randrange(len(call))] if draw.random() < 0.05 else call)


def drawn_label(draw: random.Random) -> str:
    while True:
        call = drawn_call(draw).split("A: ")[-1].strip()
        if autowebbench_scores.strict_call(call).function is not None:
            return call


def drawn_scores(count: int = 4000) -> dict[str, str]:
    """The scores of single replies, and the measures of many."""
    draw = random.Random(7)
    official, strict, attempts = [], [], defaultdict(list)
    for number in range(count):
        reply = drawn_call(draw)
        labels = tuple(drawn_label(draw) for _ in range(1 + (draw.random() < 0.2)))
        if draw.random() < 0.4:
            reply = f"A: {labels[0]}"
        official.append(str(autowebbench_scores.official_step(reply, labels)))
        strict.append(str(autowebbench_scores.strict_step(reply, labels)))
        values = autowebbench_scores.step_values(reply, labels)
        attempts[number // 2000, str(number % 90)].append(values)
    dropped = autowebbench_scores.DROPPED
    counts = {"steps": count, dropped: sum(int(v[dropped]) for s in attempts.values() for v in s)}
    played = [(task, steps) for (_, task), steps in attempts.items()]
    measures = measured(autowebbench_scores.COLUMNS, played, resamples=50)
    scores = Scores(title="autowebbench", measures=measures, counts=counts)
    steps = []
    for _ in range(count):
        pairs = [(draw.choice(("CLICK", "TYPE", "SELECT")), draw.choice(TEXTS)) for _ in "ab"]
        said, recorded = (mind2web.operation(*pair) for pair in pairs)
        answer = None if draw.random() < 0.1 else (draw.choice("123"), said)
        rights = draw.sample("123", draw.randrange(3))
        steps.append(str(mind2web.step_score(answer, rights, recorded)))
    return {
        "official": digest(official),
        "strict": digest(strict),
        "measures": digest([msgspec.json.encode(scores)]),
        "mind2web": digest(steps),
    }


async def record() -> dict[str, Any]:
    found: dict[str, Any] = {"drawn": drawn_scores()}
    for name, recordings in benchmarks():
        scores, shown = await played(recordings)
        found[name] = {"shown": shown, "counts": scores["counts"], "title": scores["title"]} | {
            m["name"]: [round(m[key], 9) for key in ("value", "low", "high", "steps")]
            for m in scores["measures"]
        }
    return found


if __name__ == "__main__":
    text = json.dumps(asyncio.run(record()), ensure_ascii=False, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")
