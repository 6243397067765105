"""A corpus in the formats that trainers read.

trl        sft_level1.jsonl … (columns prompt and completion) and preference_level3.jsonl
           (columns prompt, chosen and rejected), in the conversational format
alpaca     sft_level1.json …, preference_level3.json and dataset_info.json, for LLaMA-Factory
sharegpt   the same files in LLaMA-Factory's ShareGPT format
datasets   a DatasetDict of 🤗 datasets, one split per level, with the provenance as columns
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import replacing_folder, write_atomic
from swarm_ui.model import ChatMessage
from swarm_ui.optim.stage1.corpus.samples import LEVELS, HeldOut, Sample
from swarm_ui.optim.stage1.corpus.store import read_corpus

Folders = Path | Sequence[Path]
Row = dict[str, Any]

PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")
FORMATS = ("trl", "alpaca", "sharegpt", "datasets")


def export(
    corpus: Folders,
    format: str,
    out: Path,
    *,
    levels: Sequence[int] = LEVELS,
    held_out: HeldOut | None = None,
) -> list[Path]:
    """Write a corpus for another library.

    Samples of level 3 are written twice: their chosen responses for supervised training, and the
    preferences.

    Args:
        corpus: folder of a corpus, or several; a sample that two of them contain is written once.
        format: one of :data:`FORMATS`.
        out: folder to write into; files of the same names are replaced.
        levels: the levels to write.
        held_out: checked in addition to the rule that the corpus was made with.

    Returns:
        the files that were written.

    Raises:
        ConfigError: the format or the corpus does not exist, there is nothing to write, or a sample
            has a held-out task.
        MissingExtra: the format is ``datasets``, and that library is not installed.
    """
    if format not in FORMATS:
        raise ConfigError(f"export: no format {format!r}; expected one of {', '.join(FORMATS)}")
    samples = gather(corpus, levels=levels, held_out=held_out)
    if not samples:
        raise ConfigError(
            f"export: no samples of level {', '.join(map(str, levels))} in '{corpus}'"
        )
    if format == "datasets":
        return [_save_datasets(samples, out)]
    form = {"trl": conversational, "alpaca": _alpaca, "sharegpt": _sharegpt}[format]
    written, info = [], {}
    for name, part in parts(samples).items():
        pair = name.startswith("preference")
        rows = [form(sample, pair=pair) for sample in part]
        if format == "trl":
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
            written.append(_write(out / f"{name}.jsonl", "".join(lines)))
            continue
        listed = json.dumps(rows, ensure_ascii=False, indent=1)
        written.append(_write(out / f"{name}.json", listed))
        about = _INFO[format, pair] | {"file_name": f"{name}.json"}
        if any("history" in row for row in rows):
            about["columns"] = about["columns"] | {"history": "history"}
        info[name] = about
    if info:
        written.append(_write(out / "dataset_info.json", json.dumps(info, indent=2)))
    return written


def gather(
    corpus: Folders, *, levels: Sequence[int] = LEVELS, held_out: HeldOut | None = None
) -> list[Sample]:
    """The samples of some levels in one or several corpora, each once.

    Raises the errors of :func:`~swarm_ui.optim.stage1.corpus.store.read_corpus`.
    """
    found: dict[str, Sample] = {}
    for folder in [corpus] if isinstance(corpus, Path) else corpus:
        for sample in read_corpus(folder, held_out=held_out):
            if sample.level in levels:
                found.setdefault(sample.id, sample)
    return list(found.values())


def parts(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of each part that is not empty, by name of its file."""
    found = [[s for s in samples if s.level == level] for level in LEVELS]
    found.append([s for s in samples if s.rejected is not None])
    return {name: part for name, part in zip(PARTS, found, strict=True) if part}


def conversational(sample: Sample, *, pair: bool) -> Row:
    """TRL's conversational prompt and completion, or with ``pair`` prompt, chosen and rejected."""
    row: Row = {"prompt": _turns(sample.chat)}
    chosen = [_turn("assistant", sample.response)]
    if not pair:
        return row | {"completion": chosen}
    return row | {"chosen": chosen, "rejected": [_turn("assistant", sample.rejected or "")]}


def _alpaca(sample: Sample, *, pair: bool) -> Row:
    system, turns = _divided(sample)
    row: Row = {"system": system, "instruction": turns[-1], "input": ""}
    if len(turns) > 1:
        row["history"] = [
            list(exchange) for exchange in zip(turns[:-1:2], turns[1::2], strict=True)
        ]
    if pair:
        return row | {"chosen": sample.response, "rejected": sample.rejected or ""}
    return row | {"output": sample.response}


def _sharegpt(sample: Sample, *, pair: bool) -> Row:
    system, turns = _divided(sample)
    asked = [{"from": ("human", "gpt")[k % 2], "value": text} for k, text in enumerate(turns)]
    response = {"from": "gpt", "value": sample.response}
    if not pair:
        return {"system": system, "conversations": [*asked, response]}
    sides = {"chosen": response, "rejected": {"from": "gpt", "value": sample.rejected or ""}}
    return {"system": system, "conversations": asked, **sides}


def _divided(sample: Sample) -> tuple[str, list[str]]:
    """The text of the system turn (empty: there is none), and those of the turns after it.

    Raises:
        ConfigError: they are not turns of user, assistant, user, and so on, which is what
            LLaMA-Factory reads.
    """
    roles = [turn.role for turn in sample.chat]
    texts = [turn.content for turn in sample.chat]
    system = texts.pop(0) if roles[:1] == ["system"] else ""
    expected = ["user", "assistant"] * len(texts)
    if len(texts) % 2 == 0 or roles[-len(texts) :] != expected[: len(texts)]:
        raise ConfigError(
            f"export: sample {sample.id}: expected turns of the user and the assistant in turn, "
            f"after at most one system turn, got {', '.join(roles) or 'none'}; use the format trl "
            "or datasets"
        )
    return system, texts


_PAIR = {"chosen": "chosen", "rejected": "rejected"}
_PLAIN = {"system": "system", "prompt": "instruction", "query": "input"}
_TALK = {"system": "system", "messages": "conversations"}
_INFO: dict[tuple[str, bool], Row] = {
    ("alpaca", False): {"formatting": "alpaca", "columns": _PLAIN | {"response": "output"}},
    ("alpaca", True): {"formatting": "alpaca", "ranking": True, "columns": _PLAIN | _PAIR},
    ("sharegpt", False): {"formatting": "sharegpt", "columns": _TALK},
    ("sharegpt", True): {"formatting": "sharegpt", "ranking": True, "columns": _TALK | _PAIR},
}


def _save_datasets(samples: Sequence[Sample], out: Path) -> Path:
    try:
        from datasets import Dataset, DatasetDict, Features, Value
    except ImportError:
        raise MissingExtra("train", "the export to datasets", "datasets") from None
    kinds = {str: Value("string"), int: Value("int64"), float: Value("float64")}
    features = Features({name: kinds[kind] for name, (kind, _) in _COLUMNS.items()})
    features["prompt"] = [{"role": kinds[str], "content": kinds[str]}]
    splits = DatasetDict()
    for level in sorted({sample.level for sample in samples}):
        rows = [_flat(sample) for sample in samples if sample.level == level]
        splits[f"level{level}"] = Dataset.from_list(rows, features=features)
    if out.exists() and not (out / "dataset_dict.json").is_file() and any(out.iterdir()):
        raise ConfigError(
            f"export: '{out}' is not empty and holds no datasets; choose another folder"
        )
    with replacing_folder(out) as made:
        splits.save_to_disk(str(made))
    return out


_COLUMNS: dict[str, tuple[type, str]] = {
    "id": (str, "id"), "level": (int, "level"), "kind": (str, "kind"), "prompt": (str, "chat"),
    "response": (str, "response"), "rejected": (str, "rejected"), "score": (float, "score"),
    "rejected_score": (float, "rejected_score"), "heard": (int, "heard"),
    "prompt_format": (str, "prompt_format"),
    "environment": (str, "origin.environment"), "task": (str, "origin.task"),
    "seed": (int, "origin.seed"), "step": (int, "origin.step"), "agent": (str, "origin.agent"),
    "adversary": (str, "origin.adversary"), "critic": (str, "origin.critic"),
    "prompt_hash": (str, "origin.prompt"),
}  # fmt: skip
"""Type and attribute of a sample, by name of the column."""


def _flat(sample: Sample) -> Row:
    row = {name: attrgetter(path)(sample) for name, (_, path) in _COLUMNS.items()}
    return row | {"prompt": _turns(sample.chat)}


def _turns(chat: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [_turn(turn.role, turn.content) for turn in chat]


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _write(path: Path, text: str) -> Path:
    write_atomic(path, text)
    return path
