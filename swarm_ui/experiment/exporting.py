"""Exports adapters, episodes, pairs and edges of a run to formats of other programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.action import Abstain, Action
from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.experiment.runs import configuration_of
from swarm_ui.experiment.teams import LEARNED_EDGES, agent_names, configured_edges
from swarm_ui.files import replacing_folder
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.model import ChatMessage, ChatModel
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.prompts import chat_of, format_named
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode, Trace

if TYPE_CHECKING:
    from swarm_ui.optim.preferences import PreferencePair

_ADAPTERS = "*/adapter_config.json"
CORPUS_FORMATS = ("trl", "llama-factory")


def corpus(folder: Path, form: str, out: Path) -> list[Path]:
    """Write the samples of a corpus for another library. Raises ``ConfigError``."""
    from swarm_ui.optim.stage1 import export

    try:
        return export(folder, form, out)
    except OSError as error:
        raise ConfigError(f"cannot write '{out}': {error}") from error


def counts(folder: Path) -> str:
    """The samples and dropped items of a corpus as JSON. Raises ``ConfigError``."""
    from swarm_ui.optim.stage1 import totals

    return msgspec.json.format(msgspec.json.encode(totals(folder)), indent=2).decode() + "\n"


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


def _expect_no_link(path: Path) -> None:
    """Raise ``ConfigError`` for a link, which may lead out of the folder."""
    if path.is_symlink():
        raise ConfigError(
            f"'{path}' is a symbolic link to '{path.readlink()}': export neither reads nor writes "
            "through links; replace it with the file itself"
        )


def text(run: Path, what: str, solved: bool, prompt_format: str | None = None) -> str:
    """Pairs, edges or a drawing, as text that ends with a line break.

    ``prompt_format``: rewrite prompts and replies of pairs in this format; ``None``: keep them.
    Raises ``ConfigError`` if there is no such format.
    """
    if prompt_format is not None:
        format_named(prompt_format)
    directory = RunDirectory.open_to_read(run)
    if what == "pairs":
        return _pairs(directory, solved, prompt_format)
    agents, edges, delays = _team(directory)
    if what == "edges":
        late = [{"from": a, "to": b, "delay": delay} for (a, b), delay in delays.items()]
        document = {"agents": agents, "edges": edges, **({"delays": late} if late else {})}
        return json.dumps({**document, **_probabilities(directory)}, indent=1) + "\n"
    graph = _drawable(agents, edges, delays)
    return graph.to_mermaid()


def episodes(run: Path, solved: bool) -> Iterator[Episode]:
    """The episodes of a run, one at a time; ``solved``: only those.

    Raises:
        ConfigError: there is no such run, or it has no episodes.
    """
    return _episodes(RunDirectory.open_to_read(run), solved)


def _episodes(
    run: RunDirectory, solved: bool, *, training_first: bool = False
) -> Iterator[Episode]:
    paths = sorted(run.traces.glob("*.jsonl"))
    if not paths:
        raise ConfigError(
            f"'{run.path}' has no episodes to export; choose a run that has played some"
        )
    paths.sort(key=lambda path: training_first and not path.name.startswith("train-"))
    return _read(paths, solved)


def _read(paths: Sequence[Path], solved: bool) -> Iterator[Episode]:
    for path in paths:
        _expect_no_link(path)
        # A run that was killed, or still writes, may have a last line that is cut off.
        yield from (e for e in iter_jsonl(path, whole=False) if e.success or not solved)


def _pairs(run: RunDirectory, solved: bool, prompt_format: str | None) -> str:
    """Preference pairs from the episodes whose messages have credit, as JSON lines.

    Right replies without a rejected one are left out, because TRL reads only complete pairs.
    """
    from swarm_ui.optim.preferences import preference_pairs

    made = preference_pairs(list(_episodes(run, solved)))
    found = [pair for pair in made if pair.rejected_text is not None]
    if not found:
        why = (
            "no right reply has a wrong one beside it"
            if made
            else ("no message of its episodes has credit; training runs have it (swarm-ui train)")
        )
        raise ConfigError(f"'{run.path}' has no pairs: {why}")
    rows = (pair_row(p, prompt_format) for p in found)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _drawable(
    agents: Sequence[str], edges: Sequence[Edge], delays: Mapping[Edge, int]
) -> CollabGraph:
    """A team with these edges, which is only drawn."""
    model: ChatModel = ScriptedModel([])
    rounds = 1 + max(delays.values(), default=0)
    team = CollabGraph.solo(model)
    if len(agents) > 1:
        team = CollabGraph.collaborative(len(agents), rounds, model=model, edges=())
    # A graph of the user has names of its own.
    names = dict(zip(agent_names(len(agents)), agents, strict=True))
    return team.rename(names).with_edges(edges, delays=delays)


def _learned(run: RunDirectory) -> bool:
    """Whether a run learned its edges; other runs save the fixed distribution they sample from."""
    config = run.config()
    train = config.get("train", config)  # a demo has one section for all
    return isinstance(train, dict) and train.get("edges") == "learned"


def _team(run: RunDirectory) -> tuple[tuple[str, ...], tuple[Edge, ...], Mapping[Edge, int]]:
    """Agents, edges and delays: the learned ones; if there are none, the configured ones; if there
    are none either, those of the largest recorded team."""
    path = run.path / LEARNED_EDGES
    if _learned(run) and path.is_file():
        from swarm_ui.optim.edges.distribution import EdgeDistribution

        distribution = EdgeDistribution.load(path)
        edges = tuple(distribution.mode().edges)
        return tuple(distribution.names), edges, distribution.delays
    if run.config().get("made_by") == "swarm-ui":
        team = configuration_of(run.path).team
        return tuple(agent_names(team.agents)), configured_edges(team), {}
    trace = _decision_of_team(run)
    kept = tuple((a, b) for a, b in trace.edges if a in trace.agents and b in trace.agents)
    delays = dict(zip(trace.edges, trace.delays, strict=True)) if trace.delays else {}
    return trace.agents, kept, {edge: delays[edge] for edge in kept if delays.get(edge)}


def _decision_of_team(run: RunDirectory) -> Trace:
    """A decision of the largest team of a run, which may hold episodes of one agent too.

    Of teams of one size, one with edges is taken, and of these the last that was not in training.
    """
    found: Trace | None = None
    most = (0, False)
    for episode in _episodes(run, False, training_first=True):
        if not episode.steps:
            continue
        trace = episode.steps[-1].trace
        size = (len(trace.agents), any(b in trace.agents for _, b in trace.edges))
        if size >= most:
            found, most = trace, size
    if found is None:
        raise ConfigError(f"'{run.path}' has no decision from which a team can be read")
    return found


def _probabilities(run: RunDirectory) -> dict[str, Any]:
    """The distribution of the edges, if the run saved one."""
    path = run.path / LEARNED_EDGES
    if not path.is_file():
        return {}
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    distribution = EdgeDistribution.load(path)
    marginals = distribution.marginals().items()
    return {
        "learned": _learned(run),
        "probabilities": [{"from": a, "to": b, "probability": p} for (a, b), p in marginals],
        "mode": distribution.mode().edges,
    }


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
    out: dict[str, Any] = {"node": found.node, "weight": found.weight, "source": found.source}
    good, bad = found.chosen_text, found.rejected_text
    if prompt_format is None:
        turns = _turns(found)
    else:
        turns = format_named(prompt_format).chat(found.decision)
        good = _rewritten(found, found.chosen, good, prompt_format)
        if found.rejected is not None and bad is not None:
            bad = _rewritten(found, found.rejected, bad, prompt_format)
    if turns is None:
        out |= {"prompt": found.prompt, "chosen": good}
        return out if bad is None else out | {"rejected": bad}
    out["prompt"] = [{"role": turn.role, "content": turn.content} for turn in turns]
    out["chosen"] = [_said(good)]
    return out if bad is None else out | {"rejected": [_said(bad)]}


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


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
