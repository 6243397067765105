"""Updates of a team: what they learn from, what goes on beside them, and rollouts of graphs."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, TinyModel, button_team, click, screen

from swarm_ui import Action, Decision, Observation, Step
from swarm_ui.optim import PreferencePair, ScriptedCritic, TeamConfig, TeamTrainer, UpdateConfig


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def pair(goal: str = "save") -> PreferencePair:
    observation = screen(["Save", "Back", "Help"], goal=goal)
    return PreferencePair(
        node="agent_0", decision=Decision(observation=observation), chosen=click(0, "Save"),
        rejected=click(1, "Back"), weight=1.0,
    )  # fmt: skip


# -- what goes on beside an update ----------------------------------------------------------------

CONFIG = TeamConfig(
    iterations=2, shared_iterations=0, episodes=4, edges="fixed", rank=4,
    update=UpdateConfig(method="rft", steps=3, batch_size=4, lr=5e-2),
)  # fmt: skip
LONGEST = 60.0
"""Seconds after which a test has failed."""


class Waiting:
    """Gives examples to rehearse, as part of an update, and waits there for an event."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.waited: list[bool] = []

    def __call__(self, count: int, rng: random.Random) -> Sequence[PreferencePair]:
        self.began.set()
        self.waited.append(self.go_on.wait(LONGEST))
        return [pair("go back")] * count


def trainer(
    model: TinyModel, rehearse: Any, *, config: TeamConfig = CONFIG, world: Any = ButtonWorld,
    **more: Any,
) -> TeamTrainer:  # fmt: skip
    def jobs(count: int, /, *, seed: int) -> list[tuple[str, int]]:
        return [("press", k) for k in range(count)]

    made = TeamTrainer(
        button_team(model), world, jobs, config=config, critic=ScriptedCritic(ButtonWorld), **more
    )
    made.rehearse = rehearse
    return made


def weights_of(model: TinyModel) -> list[torch.Tensor]:
    return [p.detach().clone() for n in model.adapters for p in model.adapter_parameters(n)]


async def set_later(event: threading.Event) -> None:
    """Set an event from the event loop, at a later turn of it."""
    for _ in range(3):
        await asyncio.sleep(0)
    event.set()


def test_the_event_loop_goes_on_during_an_update() -> None:
    waiting, model, plain = Waiting(), TinyModel(), TinyModel()

    async def run() -> None:
        training = asyncio.ensure_future(trainer(model, waiting).run())
        await asyncio.to_thread(waiting.began.wait, LONGEST)
        await set_later(waiting.go_on)
        await training

    asyncio.run(run())
    assert waiting.waited == [True] * 6  # three adapters, two iterations
    # The loop, and what runs on it, does not change what is learned.
    asyncio.run(trainer(plain, lambda count, _: [pair("go back")] * count).run())
    assert equal(weights_of(model), weights_of(plain)) and model.versions == plain.versions


def test_a_cancelled_training_leaves_no_thread_that_changes_weights(tmp_path: Path) -> None:
    waiting, model = Waiting(), TinyModel()

    async def run() -> None:
        training = asyncio.ensure_future(trainer(model, waiting, folder=tmp_path / "run").run())
        await asyncio.to_thread(waiting.began.wait, LONGEST)
        start = weights_of(model)
        training.cancel()
        await asyncio.sleep(0)
        assert not training.done()  # it waits for the thread
        await set_later(waiting.go_on)
        with pytest.raises(asyncio.CancelledError):
            await training
        assert equal(weights_of(model), start)  # the update was given up before its first step
        assert set(model.versions.values()) == {0}

    threads = threading.active_count()
    asyncio.run(run())
    assert threading.active_count() == threads and waiting.waited == [True]
    again, plain, quick = TinyModel(), TinyModel(), lambda count, _: [pair()] * count
    asyncio.run(trainer(again, quick, folder=tmp_path / "run").run(resume=True))
    asyncio.run(trainer(plain, quick).run())
    assert equal(weights_of(again), weights_of(plain))


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_error_of_a_callback_during_an_update_ends_the_training(kind: Any) -> None:
    def report(iteration: int, what: str, done: int, total: int) -> None:
        if what == "update" and done:
            raise kind("stop here")

    model = TinyModel()
    stopping = trainer(model, lambda count, _: [pair()] * count)
    stopping.on_progress = report
    with pytest.raises(kind, match="stop here"):
        asyncio.run(stopping.run())
    assert model.versions["agent_0"] == 1


# -- graphs that are played at once ---------------------------------------------------------------


class Crowd:
    """Counts the episodes under way. An episode waits at its start until another graph plays the
    same task and seed, for at most some turns of the event loop."""

    def __init__(self) -> None:
        self.playing: list[int] = []
        self.most, self.together = 0, False

    def world(self) -> ButtonWorld:
        crowd = self

        class World(ButtonWorld):
            async def reset(self, *, task: str, seed: int) -> Observation:
                crowd.playing.append(seed)
                crowd.most = max(crowd.most, len(crowd.playing))
                for _ in range(50):
                    crowd.together |= crowd.playing.count(seed) > 1
                    if not crowd.together:
                        await asyncio.sleep(0)
                return await super().reset(task=task, seed=seed)

            async def step(self, action: Action) -> Step:
                step = await super().step(action)
                if step.ended:
                    crowd.playing.remove(self.seed)
                return step

        return World()


def learned_edges(graphs: int, concurrency: int) -> tuple[Crowd, TinyModel, list[Any]]:
    crowd, model = Crowd(), TinyModel()
    config = replace(CONFIG, edges="learned", graphs=graphs, concurrency=concurrency, episodes=8)
    result = asyncio.run(trainer(model, None, config=config, world=crowd.world).run())
    names = ("success", "credit", "pairs", "graphs", "edges_moved")
    figures = [[m[name] for name in names] for m in result.history]
    return crowd, model, [result.edges.logits.tolist(), figures]


def test_graphs_of_learned_edges_are_played_at_once_with_the_same_result() -> None:
    crowd, model, result = learned_edges(2, concurrency=64)
    assert crowd.together and crowd.most > 4
    alone, other, expected = learned_edges(2, concurrency=1)
    assert not alone.together and alone.most == 1
    assert result == expected and equal(weights_of(model), weights_of(other))


@pytest.mark.parametrize(("graphs", "concurrency"), [(4, 2), (2, 5)])
def test_all_graphs_share_the_places_of_the_episodes(graphs: int, concurrency: int) -> None:
    crowd, _, _ = learned_edges(graphs, concurrency)
    assert crowd.together and crowd.most == concurrency
