"""Exports adapters, episodes and pairs of a run to formats of other programs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import replacing_folder
from swarm_ui.prompts import chat_of, format_named
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import TRACE_VERSION, Episode

if TYPE_CHECKING:
    from swarm_ui.optim.preferences import PreferencePair

What = Literal["adapters", "episodes", "pairs", "trl"]
_ADAPTERS = "*/adapter_config.json"


def corpus(folder: Path, out: Path) -> list[str]:
    """Write the samples of a corpus in trl's form; returns the names of the files."""
    from swarm_ui.optim.stage1 import export

    return [path.name for path in export(folder, out)]


def adapters(run: Path, out: Path) -> list[str]:
    """Copy the adapters to a folder, which replaces earlier ones; returns their names. After an
    error, the folder is as before."""
    own = RunDirectory.open_to_read(run).adapters
    for path in (own, out, *own.rglob("*"), *out.rglob("*")):
        _expect_no_link(path)
    found = sorted(p.parent for p in own.glob(_ADAPTERS))
    if not found:
        raise ConfigError(f"'{run}' has no adapters: it trained nothing, or has not finished")
    if out.exists() and not (out.is_dir() and (any(out.glob(_ADAPTERS)) or not any(out.iterdir()))):
        raise ConfigError(f"'{out}' exists and holds no adapters; choose another folder")
    with replacing_folder(out) as made:
        shutil.copytree(own, made, dirs_exist_ok=True)
    return [folder.name for folder in found]


def lines(run: Path, what: str, *, solved: bool = False) -> Iterator[str]:
    """The ``episodes`` of a run, or its preference ``pairs``, as JSON: one line at a time.

    ``solved``: only those of episodes that were solved. Raises ``ConfigError`` if there are none.
    """
    directory = RunDirectory.open_to_read(run)
    chosen = (e for e in _episodes(directory) if e.success or not solved)
    whole = ({"version": TRACE_VERSION, "episode": episode} for episode in chosen)
    for row in _pairs(directory, chosen) if what == "pairs" else whole:
        yield msgspec.json.encode(row).decode() + "\n"


def _episodes(run: RunDirectory) -> Iterator[Episode]:
    """The episodes, one at a time, those of training first."""
    paths = sorted(run.traces.glob("*.jsonl"), key=lambda p: (not p.name.startswith("train"), p))
    if not paths:
        raise ConfigError(f"'{run.path}' has no episodes; choose a run that has played some")
    for path in paths:
        _expect_no_link(path)
        # A run that was killed, or still writes, may have a last line that is cut off.
        yield from iter_jsonl(path, whole=False)


def _expect_no_link(path: Path) -> None:
    """Raise ``ConfigError`` for a link, which may lead out of the folder."""
    if path.is_symlink():
        raise ConfigError(f"'{path}' is a symbolic link to '{path.readlink()}', which export does "
                          "not follow; replace it with the file itself")  # fmt: skip


def _pairs(run: RunDirectory, episodes: Iterable[Episode]) -> Iterator[dict[str, Any]]:
    """Preference pairs from the episodes whose messages have credit, one episode at a time.

    Right replies without a rejected one are left out, because TRL reads only complete pairs.
    """
    from swarm_ui.optim.preferences import preference_pairs

    draws, seen = Random(0), set[int]()
    for episode in episodes:
        for pair in preference_pairs([episode], rng=draws):
            key = hash((pair.node, pair.decision, pair.chosen and pair.chosen.key))
            if pair.rejected_text is not None and key not in seen:
                seen.add(key)
                yield pair_row(pair)
    if not seen:
        raise ConfigError(f"'{run.path}' has no pairs: no message has credit, as in a training, "
                          "or no right reply has a wrong one beside it")  # fmt: skip


def pair_row(found: PreferencePair) -> dict[str, Any]:
    """A preference pair, in one of TRL's forms, with exactly the prompt and replies that were used.

    A prompt that was sent as a chat gives the conversational form; one that was read as plain text
    (by a model in this process) gives texts instead of turns. Pictures are left out."""
    said: dict[str, Any] = {"prompt": found.prompt, "chosen": found.chosen_text}
    if found.rejected_text is not None:
        said["rejected"] = found.rejected_text
    turns = None
    with suppress(TraceError):  # the model read plain text
        turns = (
            chat_of(found.prompt)
            if found.prompt
            else format_named(found.prompt_format).chat(found.decision)
        )
    if turns is not None:
        said = {k: [{"role": "assistant", "content": text}] for k, text in said.items()}
        said["prompt"] = [{"role": turn.role, "content": turn.content} for turn in turns]
    return {"node": found.node, "weight": found.weight, "source": found.source, **said}
