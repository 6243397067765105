"""Replay of one recorded decision with changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from swarm_ui.action import Action, parse_action
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.engine.replay import replay
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, FilledTeam
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.models import adapter_names, open_model
from swarm_ui.experiment.run import expect_trust, stored_config
from swarm_ui.experiment.teams import graph_of, parse_edges
from swarm_ui.message import Message
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import StepRecord, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes that a replay makes to the record."""

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


class Replayed(NamedTuple):
    """A decision before and after the change."""

    before: Trace
    after: Trace
    requests: int
    """Calls that were made again."""


async def replay_decision(
    path: Path,
    episode: int,
    step: int,
    changes: Changes,
    overrides: Sequence[str] = (),
    *,
    file: Path | None = None,
    trusted: bool = False,
) -> Replayed:
    """Run the decision again, by the team of the settings with the recorded edges.

    Without changes, no model is opened. ``episode`` and ``step`` count from 1; ``overrides`` and
    ``file`` are for :func:`~swarm_ui.experiment.loading.load`; ``trusted``: see
    :func:`~swarm_ui.experiment.run.expect_trust`. Raises ``ConfigError`` if there is no such
    decision, message or edge, or the team is not known."""
    steps, run = _found(path, episode)
    if not 1 <= step <= len(steps):
        raise ConfigError(f"episode {episode} has {len(steps)} steps, so there is no step {step}")
    before = steps[step - 1].trace
    config, team = _settings(run, overrides, file)
    _check_team(team, before)
    if run is not None and changes.any and not trusted:
        expect_trust(run, config, overrides, plays=False)
    edges = [edge for edge in before.edges if {*edge} <= {*before.agents}]
    async with open_model(config.model, None if changes.any else _NoModel()) as model:
        graph = graph_of(team, model, adapter_names(config.model, team.agents), edges)
        again = [c.id for c in before.calls if changes.again and c.node in before.agents]
        said = {id: _message(before, id, text) for id, text in changes.say.items()}
        after = await replay(
            _changed(graph, changes), before, messages=said, without=changes.without, again=again
        )
    kept = {id(call) for call in before.calls}
    asked = sum(
        id(call) not in kept and call.id not in changes.say and call.node in before.agents
        for call in after.calls
    )
    return Replayed(before, after, asked)


def _changed(graph: CollabGraph, changes: Changes) -> CollabGraph:
    """The graph with changed edges."""
    for text in changes.cut:
        for edge in parse_edges(text, [*graph.nodes]):
            if edge not in graph.edges:
                known = ", ".join(f"{a}>{b}" for a, b in graph.edges) or "no edges"
                raise ConfigError(f"--cut {text}: there is no such edge; the decision has {known}")
            graph = graph.without_edge(*edge)
    for text in changes.add:
        for edge in parse_edges(text, [*graph.nodes]):
            graph = graph if edge in graph.edges else graph.with_edge(*edge)
    return graph


def messages(done: Replayed) -> list[dict[str, str]]:
    """Each message before and after the change."""
    then, now = ({m.id: _short(m) for m in t.messages} for t in (done.before, done.after))
    return [
        {"id": id, "before": then.get(id, "–"), "after": now.get(id, "–")}
        for id in dict.fromkeys([*then, *now])
    ]


def _short(message: Message) -> str:
    if message.error is not None:
        return f"[failed: {message.error}]"
    return str(message.action) if message.action is not None else message.content[:80]


class _NoModel:
    """A model for replays without new calls; it answers no request."""

    name = "no model"

    async def generate(self, requests: object) -> NoReturn:
        raise ConfigError("the record lacks a call: give --again to make the calls of all agents")

    score = generate


def _found(path: Path, number: int) -> tuple[Sequence[StepRecord], Path | None]:
    """The steps of the episode, and the folder of the run it belongs to."""
    above = path.resolve().parent.parent
    run, files = (above if (above / "config.json").is_file() else None), [path]
    if path.is_dir():
        run, files = path, sorted((path / "traces").glob("*.jsonl"))
    count = 0
    for file in files:
        # A run that was killed, or still writes, may have a last line that is cut off.
        for episode in iter_jsonl(file, whole=file is path):
            count += 1
            if count == number:
                return episode.steps, run
    raise ConfigError(f"'{path}' has {count} episodes, so there is no episode {number}")


def _settings(
    run: Path | None, overrides: Sequence[str], file: Path | None
) -> tuple[Config, FilledTeam]:
    """The settings of the run and its team, overridden by those of the command line."""
    learning, base = False, None
    if run is not None and file is None:
        directory = RunDirectory.open_to_read(run)
        if directory.config().get("made_by") == "swarm-ui" or not overrides:
            base = stored_config(directory).plain()
            learning = directory.config().get("command") == "train"
    config = load(file, overrides, base=base)
    return config, config.team.filled(learning=learning)


def _check_team(team: FilledTeam, trace: Trace) -> None:
    if trace.ended_by or any(trace.delays):
        raise ConfigError("the decision was made by a graph with delays or an early end; replay it "
                          "in Python, with CollabGraph.replay")  # fmt: skip
    if len(trace.agents) != team.agents or trace.rounds != team.rounds:
        raise ConfigError(
            f"the decision was made by {len(trace.agents)} agents in {trace.rounds} rounds; the "
            f"settings say {team.agents} and {team.rounds}. Give those of the team, team.agents=…; "
            "a graph of your own is replayed in Python, with CollabGraph.replay"
        )


def _message(trace: Trace, id: str, text: str) -> Message | str:
    """The message with new content, and the action in that content."""
    try:
        message = trace.message(id)
    except KeyError:
        return text  # replay() lists the valid ids
    found = parse_action(text)
    action = found if isinstance(found, Action) else None
    return msgspec.structs.replace(message, content=text, action=action, error=None)
