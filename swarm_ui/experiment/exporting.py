"""Exports adapters, episodes, pairs and edges of a run to formats of other programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.action import Abstain, Action
from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.experiment.teams import LEARNED_EDGES, agent_names
from swarm_ui.files import replacing_folder
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.model import ChatMessage
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.prompts import chat_of, format_named
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import TRACE_VERSION, Episode, Trace

if TYPE_CHECKING:
    from swarm_ui.optim.edges.distribution import EdgeDistribution
    from swarm_ui.optim.preferences import PreferencePair

_ADAPTERS = "*/adapter_config.json"


def corpus(folder: Path, out: Path) -> list[Path]:
    """Write the samples of a corpus in trl's form. Raises ``ConfigError``."""
    from swarm_ui.optim.stage1 import export

    try:
        return export(folder, out)
    except OSError as error:
        raise ConfigError(f"cannot write '{out}': {error}") from error


def adapters(run: Path, out: Path) -> list[str]:
    """Copy the adapters to a folder, which replaces earlier ones; returns their names.

    Raises:
        ConfigError: the run has none, or the folder holds something else or cannot be written; then
            it is as before.
    """
    directory = RunDirectory.open_to_read(run)
    for place in (directory.adapters, out):
        for path in (place, *place.rglob("*")):
            _expect_no_link(path)
    found = sorted(p.parent for p in directory.adapters.glob(_ADAPTERS))
    if not found:
        raise ConfigError(f"'{run}' has no adapters: it trained nothing, or has not finished")
    if out.exists() and not (out.is_dir() and (any(out.glob(_ADAPTERS)) or not any(out.iterdir()))):
        raise ConfigError(f"'{out}' exists and holds no adapters; choose another folder")
    try:
        with replacing_folder(out) as made:
            shutil.copytree(directory.adapters, made, dirs_exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write '{out}': {error}") from error
    return [folder.name for folder in found]


def lines(
    run: Path, what: str, *, solved: bool = False, prompt_format: str | None = None
) -> Iterator[str]:
    """A part of a run, or the counts of a corpus, as text: one line at a time.

    Args:
        run: the folder.
        what: ``episodes``, ``pairs``, ``edges``, ``mermaid``, or ``counts`` of a corpus.
        solved: for episodes and pairs, only episodes that were solved.
        prompt_format: rewrite prompts and replies of pairs in this format; ``None``: keep them.

    Raises:
        ConfigError: there is no such run or part, or no such format.
    """
    if what == "counts":
        from swarm_ui.optim.stage1 import totals

        yield msgspec.json.format(msgspec.json.encode(totals(run)), indent=2).decode() + "\n"
        return
    directory = RunDirectory.open_to_read(run)
    if what == "episodes":
        for episode in _episodes(directory):
            if episode.success or not solved:
                record = {"version": TRACE_VERSION, "episode": episode}
                yield msgspec.json.encode(record).decode() + "\n"
    elif what == "pairs":
        yield from _pairs(directory, solved, prompt_format)
    else:
        team = _Team.of(directory)
        yield team.mermaid() if what == "mermaid" else team.document()


def _episodes(run: RunDirectory) -> Iterator[Episode]:
    """The episodes, one at a time, those of training first."""
    paths = sorted(run.traces.glob("*.jsonl"), key=lambda p: (not p.name.startswith("train"), p))
    if not paths:
        raise ConfigError(
            f"'{run.path}' has no episodes to export; choose a run that has played some"
        )
    for path in paths:
        _expect_no_link(path)
        # A run that was killed, or still writes, may have a last line that is cut off.
        yield from iter_jsonl(path, whole=False)


def _expect_no_link(path: Path) -> None:
    """Raise ``ConfigError`` for a link, which may lead out of the folder."""
    if path.is_symlink():
        raise ConfigError(
            f"'{path}' is a symbolic link to '{path.readlink()}': export neither reads nor writes "
            "through links; replace it with the file itself"
        )


# -- the team ---------------------------------------------------------------------------------


class _Team(msgspec.Struct, kw_only=True):
    """The agents and edges of a run: the learned ones, or else those of the largest team that was
    recorded; of teams of one size, one with edges, and of these the last."""

    agents: tuple[str, ...]
    edges: tuple[Edge, ...]
    delays: dict[Edge, int]
    distribution: Any = None
    """Of the edges, if the run saved one: an ``EdgeDistribution``."""
    learned: bool = False
    """Whether it was learned; other runs save the fixed distribution that they sample from."""

    @classmethod
    def of(cls, run: RunDirectory) -> _Team:
        found = _distribution(run)
        config = run.config()
        train = config.get("train", config)
        learned = found and isinstance(train, dict) and train.get("edges") == "learned"
        if found is not None and learned:
            agents, edges = tuple(found.names), tuple(found.mode().edges)
            delays = dict(found.delays)
        else:
            trace = _largest(run)
            inside = tuple(edge for edge in trace.edges if {*edge} <= {*trace.agents})
            late = dict(zip(trace.edges, trace.delays, strict=True)) if trace.delays else {}
            agents, edges = trace.agents, inside
            delays = {edge: late[edge] for edge in inside if late.get(edge)}
        return cls(
            agents=agents,
            edges=edges,
            delays=delays,
            distribution=found,
            learned=bool(learned),
        )

    def document(self) -> str:
        """The edges as JSON, with their probabilities, if the run saved them."""
        late = [{"from": a, "to": b, "delay": delay} for (a, b), delay in self.delays.items()]
        document: dict[str, Any] = {"agents": self.agents, "edges": self.edges}
        document |= {"delays": late} if late else {}
        if self.distribution is not None:
            chances = self.distribution.marginals().items()
            document["learned"] = self.learned
            document["probabilities"] = [
                {"from": a, "to": b, "probability": p} for (a, b), p in chances
            ]
            document["mode"] = self.distribution.mode().edges
        return json.dumps(document, indent=1) + "\n"

    def mermaid(self) -> str:
        """A drawing of a team with these edges."""
        model, count = ScriptedModel([]), len(self.agents)
        rounds = 1 + max(self.delays.values(), default=0)
        team = CollabGraph.solo(model)
        if count > 1:
            team = CollabGraph.collaborative(count, rounds, model=model, edges=())
        # A graph of the user has names of its own.
        team = team.rename(dict(zip(agent_names(count), self.agents, strict=True)))
        return team.with_edges(self.edges, delays=self.delays).to_mermaid()


def _largest(run: RunDirectory) -> Trace:
    """A decision of the largest team."""
    found, most = None, (0, False)
    for trace in (episode.steps[-1].trace for episode in _episodes(run) if episode.steps):
        size = len(trace.agents), any(listener in trace.agents for _, listener in trace.edges)
        if size >= most:
            found, most = trace, size
    if found is None:
        raise ConfigError(f"'{run.path}' has no decision from which a team can be read")
    return found


def _distribution(run: RunDirectory) -> EdgeDistribution | None:
    path = run.path / LEARNED_EDGES
    if not path.is_file():
        return None
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    return EdgeDistribution.load(path)


# -- preference pairs -------------------------------------------------------------------------


def _pairs(run: RunDirectory, solved: bool, prompt_format: str | None) -> Iterator[str]:
    """Preference pairs from the episodes whose messages have credit, one episode at a time.

    Right replies without a rejected one are left out, because TRL reads only complete pairs.
    """
    from swarm_ui.optim.preferences import preference_pairs

    if prompt_format is not None:
        format_named(prompt_format)
    draws, made, seen = Random(0), False, set[int]()
    for episode in _episodes(run):
        if solved and not episode.success:
            continue
        for pair in preference_pairs([episode], rng=draws):
            made = True
            chosen = None if isinstance(pair.chosen, Abstain) else pair.chosen.key
            key = hash((pair.node, pair.decision, chosen))
            if pair.rejected_text is not None and key not in seen:
                seen.add(key)
                yield json.dumps(pair_row(pair, prompt_format), ensure_ascii=False) + "\n"
    if not seen:
        why = (
            "no right reply has a wrong one beside it"
            if made
            else "no message of its episodes has credit; training runs have it (swarm-ui train)"
        )
        raise ConfigError(f"'{run.path}' has no pairs: {why}")


def pair_row(found: PreferencePair, prompt_format: str | None = None) -> dict[str, Any]:
    """A preference pair, in one of TRL's forms.

    The prompt is the one that was used, and the replies are exactly those that are learned from. A
    prompt that was sent as a chat gives TRL's conversational form; one that was read as plain text
    (by a model in this process) gives the plain form, with texts instead of turns. Pictures are
    left out.

    Args:
        found: the pair.
        prompt_format: rewrite the decision and both replies in this format, in the conversational
            form, to train another model; replies without a valid action are not changed.
    """
    good, bad, turns = found.chosen_text, found.rejected_text, _turns(found)
    if prompt_format is not None:
        turns = format_named(prompt_format).chat(found.decision)
        good = _rewritten(found, found.chosen, good, prompt_format)
        if found.rejected is not None and bad is not None:
            bad = _rewritten(found, found.rejected, bad, prompt_format)
    said: dict[str, Any] = {"prompt": found.prompt, "chosen": good, "rejected": bad}
    if turns is not None:
        said = {k: [{"role": "assistant", "content": text}] for k, text in said.items()}
        said["prompt"] = [{"role": turn.role, "content": turn.content} for turn in turns]
    if bad is None:
        del said["rejected"]
    return {"node": found.node, "weight": found.weight, "source": found.source, **said}


def _turns(found: PreferencePair) -> tuple[ChatMessage, ...] | None:
    """The chat that was sent, or ``None`` if the model read plain text."""
    if not found.prompt:
        return format_named(found.prompt_format).chat(found.decision)
    png = found.decision.observation.png
    try:
        return chat_of(found.prompt, pictures=() if png is None else (png,))
    except TraceError:
        return None


def _rewritten(
    found: PreferencePair, action: Action | Abstain, text: str, prompt_format: str
) -> str:
    reason = format_named(found.prompt_format).reason(text)
    return format_named(prompt_format).write(action, found.decision.observation, reason)
