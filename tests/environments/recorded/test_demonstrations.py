"""Recordings of people as demonstrations: what ``play`` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui.action import Action
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.environments.recorded.demonstrations import Recordings
from swarm_ui.errors import ConfigError, TraceError


async def play(path: Path, task: str, seed: int, *, give_up: bool = False) -> PlaySession:
    phone = PhoneEnvironment()
    session = PlaySession(phone, path)
    await session.begin(task, seed)
    while not session.ended:
        await session.act(phone.expert())
        if give_up:
            session.leave()
    return session


async def test_a_played_episode_is_a_demonstration(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    await play(path, "notes-create", 3)
    session = await play(path, "contacts-add", 7)
    await play(path, "contacts-add", 8, give_up=True)
    recordings = Recordings(path)
    assert recordings.name == "demonstrations on phone (simulated)"
    assert recordings.jobs() == [("notes-create", 3), ("contacts-add", 7)]
    assert session.episode is not None
    world = recordings.environment()
    screen = await world.reset(task="contacts-add", seed=7)
    for record in session.episode.steps:
        assert screen.elements == record.trace.observation.elements
        action = world.expert()
        assert record.executed is not None and action.key == record.executed.key
        assert world.grade(action) == 1.0 and world.grade(Action(action_type="wait")) == 0.0
        step = await world.step(action)
        screen = step.observation
    assert step.terminated and step.reward == 1.0
    with pytest.raises(ConfigError):
        await world.reset(task="contacts-add", seed=8)


async def test_files_without_demonstrations(tmp_path: Path) -> None:
    await play(tmp_path / "lost.jsonl", "contacts-add", 7, give_up=True)
    await play(tmp_path / "two.jsonl", "contacts-add", 7)
    lines = (tmp_path / "two.jsonl").read_text()
    (tmp_path / "two.jsonl").write_text(lines + lines.replace("phone (simulated)", "fridge"))
    for name in ("lost.jsonl", "two.jsonl"):
        with pytest.raises(ConfigError, match=name):
            Recordings(tmp_path / name)
    with pytest.raises(TraceError, match="nowhere"):
        Recordings(tmp_path / "nowhere.jsonl")
