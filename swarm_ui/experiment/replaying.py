"""Replay of one recorded decision with changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from swarm_ui.engine.replay import replay
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, checked, plain
from swarm_ui.experiment.models import adapter_names, open_model
from swarm_ui.experiment.permissions import expect_trust
from swarm_ui.experiment.runs import configuration_of
from swarm_ui.experiment.teams import arm_of, parse_edges
from swarm_ui.graph.topology import Edge
from swarm_ui.message import Message
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of the replay to the record."""

    say: dict[str, str]
    without: tuple[str, ...]
    add: tuple[str, ...]
    cut: tuple[str, ...]
    again: bool
    """Call every agent again."""

    @property
    def any(self) -> bool:
        """Whether a call may have to be repeated."""
        return bool(self.say or self.without or self.add or self.cut or self.again)


@dataclass(frozen=True, slots=True)
class Replayed:
    before: Trace
    after: Trace
    requests: int
    """Calls that were made again."""


def parse_change(text: str) -> tuple[str, str]:
    """Parse ``ID=TEXT``. Raises ``ConfigError`` if the text does not have this form."""
    id, equals, content = text.partition("=")
    if not equals:
        raise ConfigError(f"--say {text}: expected ID=TEXT")
    return id, content


async def replay_decision(
    path: Path,
    episode: int,
    step: int,
    changes: Changes,
    overrides: Draft,
    *,
    trusted: bool = False,
) -> Replayed:
    """Run the decision again.

    Args:
        path: folder of a run, or a trace file; ``overrides`` override the team of the run.
        episode, step: which decision, counted from 1.
        overrides: settings given on the command line.
        trusted: the run's settings may import code and open connections; see
            :func:`~swarm_ui.experiment.permissions.expect_trust`.
            Without changes, no model is opened.

    Raises:
        ConfigError: there is no such decision, message or edge, or the team is not known.
    """
    record, run = _found(path, episode)
    if not 1 <= step <= len(record.steps):
        raise ConfigError(
            f"episode {episode} has {len(record.steps)} steps, so there is no step {step}"
        )
    before = record.steps[step - 1].trace
    config = _settings(run, overrides)
    _check_team(config, before)
    again = [c.message for c in before.calls if changes.again and c.node in before.agents]
    if run is not None and changes.any:
        expect_trust(run, config, overrides.places, trusted=trusted, plays=False)
    async with open_model(config.model, None if changes.any else _NoModel()) as model:
        counting: Any = _CountingModel(model)
        names = adapter_names(config.model, config.team.agents)
        graph = arm_of(config.team, names, edges=_edges(before, changes)).graph(counting)
        said = {id: _message(before, id, text) for id, text in changes.say.items()}
        after = await replay(graph, before, messages=said, without=changes.without, again=again)
    return Replayed(before, after, counting.requests)


def messages(done: Replayed) -> list[dict[str, str]]:
    """Each message before and after."""
    then = {m.id: _short(m) for m in done.before.messages}
    now = {m.id: _short(m) for m in done.after.messages}
    return [
        {"id": id, "before": then.get(id, "–"), "after": now.get(id, "–")}
        for id in dict.fromkeys([*then, *now])
    ]


class _NoModel:
    """A model for replays without new calls; it answers no request."""

    name = "no model"

    async def generate(self, requests: object) -> NoReturn:
        raise ConfigError("the record lacks a call: give --again to make the calls of all agents")

    score = generate

    async def close(self) -> None:
        """Nothing to free."""


class _CountingModel:
    """A model that counts its requests."""

    def __init__(self, model: Any) -> None:
        self._model, self.requests = model, 0
        self.name, self.score, self.close = model.name, getattr(model, "score", None), model.close

    async def generate(self, requests: Any) -> Any:
        self.requests += len(requests)
        return await self._model.generate(requests)


def _found(path: Path, number: int) -> tuple[Episode, Path | None]:
    """The episode, and the folder of the run it belongs to."""
    run: Path | None = path
    files = [path]
    if path.is_dir():
        files = sorted((path / "traces").glob("*.jsonl"))
    else:
        above = path.resolve().parent.parent
        run = above if (above / "config.json").is_file() else None
    count = 0
    for count, episode in enumerate(chain.from_iterable(map(iter_jsonl, files)), start=1):
        if count == number:
            return episode, run
    raise ConfigError(f"'{path}' has {count} episodes, so there is no episode {number}")


def _settings(run: Path | None, overrides: Draft) -> Config:
    """The settings of the run, overridden by those of the command line."""
    if run is None:
        return checked(overrides)
    values = plain(configuration_of(run))
    for path in overrides.places:
        section, name = path[0], path[-1]
        if len(path) == 2 and isinstance(values.get(section), dict):
            values[section][name] = overrides.values[section][name]
    return checked(Draft(values, overrides.places, overrides.mistakes))


def _check_team(config: Config, trace: Trace) -> None:
    team = config.team
    if len(trace.agents) != team.agents or trace.rounds != team.rounds:
        raise ConfigError(
            f"the decision was made by {len(trace.agents)} agents in {trace.rounds} rounds, the "
            f"configuration says {team.agents} and {team.rounds}; give the team's settings with "
            "--config FILE or --set team.agents=…"
        )


def _edges(trace: Trace, changes: Changes) -> list[Edge]:
    """The recorded edges between agents, after adding and removing edges."""
    names = set(trace.agents)
    edges = [(a, b) for a, b in trace.edges if a in names and b in names]
    for text in changes.cut:
        for edge in parse_edges(text, trace.agents):
            if edge not in edges:
                raise ConfigError(f"--cut {text}: there is no such edge")
            edges.remove(edge)
    for text in changes.add:
        edges += [edge for edge in parse_edges(text, trace.agents) if edge not in edges]
    return edges


def _message(trace: Trace, id: str, text: str) -> Message | str:
    """The message with new content, and the action in that content."""
    from swarm_ui.action import Action, parse_action

    try:
        message = trace.message(id)
    except KeyError:
        return text  # replay() lists the valid ids
    found = parse_action(text)
    action = found if isinstance(found, Action) else None
    return msgspec.structs.replace(message, content=text, action=action, error=None)


def _short(message: Message) -> str:
    if message.error is not None:
        return f"[failed: {message.error}]"
    return str(message.action) if message.action is not None else message.content[:80]
