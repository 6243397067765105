"""Exports, each read back by the library it is for."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from corpus_fakes import FEW, HELD_OUT, jobs, scripted_corpus, tiny_llama
from msgspec.structs import replace

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage
from swarm_ui.optim.stage1 import FORMATS, HeldOut, Models, Sample, export, read_corpus, synthesize
from swarm_ui.optim.stage1.corpus.samples import WalkResult
from swarm_ui.optim.stage1.corpus.store import Corpus, read_header

FACTORY = os.environ.get("SWARM_UI_LLAMAFACTORY_PYTHON", "")
"""Python of an environment with LLaMA-Factory, which wants other versions than ours."""
PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import asyncio

    folder = tmp_path_factory.mktemp("exports") / "corpus"
    asyncio.run(scripted_corpus(folder, 3))
    return folder


@pytest.fixture(scope="module")
def samples(corpus: Path) -> list[Sample]:
    return list(read_corpus(corpus))


def of_part(samples: list[Sample], part: str) -> list[Sample]:
    return [s for s in samples if s.level == int(part[-1])]


def test_trl_reads_its_export(corpus: Path, samples: list[Sample], tmp_path: Path) -> None:
    from datasets import load_dataset
    from trl import apply_chat_template, is_conversational

    from swarm_ui.optim.stage1.finetune.encoding import load_tokenizer

    written = export(corpus, "trl", tmp_path / "out")
    assert [path.stem for path in written] == list(PARTS)
    tokenizer = load_tokenizer(tiny_llama(tmp_path / "model"))
    for path in written:
        rows = load_dataset(
            "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
        )
        part = of_part(samples, path.stem)
        assert len(rows) == len(part)
        pairs = path.stem.startswith("preference")
        columns = ["prompt", "chosen", "rejected"] if pairs else ["prompt", "completion"]
        assert rows.column_names == columns
        for row, sample in zip(rows, part, strict=True):
            assert is_conversational(row)
            said = apply_chat_template(row, tokenizer)
            assert (
                said["prompt"].endswith("Assistant:") and sample.chat[1].content in said["prompt"]
            )
            assert said["chosen" if pairs else "completion"] == sample.response + "</s>"
            if pairs:
                assert said["rejected"] == f"{sample.rejected}</s>"


def test_datasets_reads_its_export(corpus: Path, samples: list[Sample], tmp_path: Path) -> None:
    from datasets import load_from_disk

    (out,) = export(corpus, "datasets", tmp_path / "out")
    (again,) = export(corpus, "datasets", tmp_path / "out")  # replaces what it wrote
    assert out == again
    read = load_from_disk(str(out))
    assert list(read) == ["level1", "level2", "level3"]
    for name, rows in read.items():
        part = of_part(samples, name)
        assert rows["id"] == [s.id for s in part]
        assert rows["rejected"] == [s.rejected for s in part]
        assert rows["task"] == [s.origin.task for s in part]
        assert rows[0]["prompt"][1]["content"] == part[0].chat[1].content


@pytest.mark.parametrize("form", ["alpaca", "sharegpt"])
def test_llama_factory_export_is_described(
    corpus: Path, samples: list[Sample], tmp_path: Path, form: str
) -> None:
    export(corpus, form, tmp_path / "out")
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert list(info) == list(PARTS)
    for name, about in info.items():
        rows = json.loads((tmp_path / "out" / about["file_name"]).read_text())
        part = of_part(samples, name)
        assert len(rows) == len(part)
        assert about.get("ranking", False) == name.startswith("preference")
        assert set(about["columns"].values()) == set(rows[0])


CHATS: dict[str, tuple[ChatMessage, ...]] = {
    "q1": (ChatMessage("user", "q1"),),
    "q2": (ChatMessage("system", "s"), ChatMessage("user", "q0"), ChatMessage("assistant", "a0"),
           ChatMessage("user", "q2")),
}  # fmt: skip
"""Prompts by their last turn: without a system turn, and of an agent that called a tool first."""


def of_a_team(folder: Path, corpus: Path, chats: Sequence[tuple[ChatMessage, ...]]) -> Path:
    """A corpus with these prompts, as the agents of a team may have."""
    (first, *_) = (s for s in read_corpus(corpus) if s.level == 3)
    samples = [
        replace(first, id=f"{k}", kind="team", chat=chat, response=f"a{k}", rejected=None)
        for k, chat in enumerate(chats)
    ]
    with closing(Corpus(folder, read_header(corpus))) as made:
        made.add(WalkResult(task="t", seed=0, success=True, steps=1, samples=tuple(samples)))
    return folder


def test_llama_factory_gets_prompts_of_other_turns(corpus: Path, tmp_path: Path) -> None:
    """Those of a team with a chat node."""
    team = of_a_team(tmp_path / "team", corpus, list(CHATS.values()))
    export(team, "alpaca", tmp_path / "alpaca")
    rows = json.loads((tmp_path / "alpaca" / "sft_level3.json").read_text())
    assert rows == [
        {"system": "", "instruction": "q1", "input": "", "output": "a0"},
        {"system": "s", "instruction": "q2", "input": "", "history": [["q0", "a0"]],
         "output": "a1"},
    ]  # fmt: skip
    info = json.loads((tmp_path / "alpaca" / "dataset_info.json").read_text())
    assert info["sft_level3"]["columns"]["history"] == "history"
    export(team, "sharegpt", tmp_path / "sharegpt")
    rows = json.loads((tmp_path / "sharegpt" / "sft_level3.json").read_text())
    assert [(row["system"], [turn["value"] for turn in row["conversations"]]) for row in rows] == [
        ("", ["q1", "a0"]), ("s", ["q0", "a0", "q2", "a1"]),
    ]  # fmt: skip
    assert [turn["from"] for turn in rows[1]["conversations"]] == ["human", "gpt"] * 2


@pytest.mark.parametrize("roles", [("system",), ("user", "tool"), ("user", "user"), ()])
@pytest.mark.parametrize("form", ["alpaca", "sharegpt"])
def test_turns_that_llama_factory_cannot_read_are_refused(
    corpus: Path, tmp_path: Path, form: str, roles: tuple[Any, ...]
) -> None:
    chat = tuple(ChatMessage(role, "text") for role in roles)
    team = of_a_team(tmp_path / "team", corpus, [chat])
    with pytest.raises(ConfigError, match=rf"sample 0.*got {', '.join(roles) or 'none'}; .*trl"):
        export(team, form, tmp_path / "out")
    assert export(team, "trl", tmp_path / "out")


READER = """
import json, sys
from transformers import AutoTokenizer, Seq2SeqTrainingArguments
from llamafactory.data import get_dataset
from llamafactory.data.template import get_template_and_fix_tokenizer
from llamafactory.hparams import DataArguments, ModelArguments
folder, model, name, stage = sys.argv[1:]
data = DataArguments(dataset=name, dataset_dir=folder, template="default", cutoff_len=4000)
tokenizer = AutoTokenizer.from_pretrained(model)
template = get_template_and_fix_tokenizer(tokenizer, data)
args = Seq2SeqTrainingArguments(output_dir=folder, report_to="none", use_cpu=True)
model_args = ModelArguments(model_name_or_path=model, cache_dir=folder + "/.cache")
rows = get_dataset(template, model_args, data, args, stage, tokenizer)["train_dataset"]
keys = ["input_ids"] if stage == "sft" else ["chosen_input_ids", "rejected_input_ids"]
labels = ["labels"] if stage == "sft" else ["chosen_labels", "rejected_labels"]
read = [[tokenizer.decode(row[key]) for key in keys] for row in rows]
said = [[tokenizer.decode([t for t in row[key] if t >= 0]) for key in labels] for row in rows]
print("READ" + json.dumps({"whole": read, "said": said}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not FACTORY, reason="SWARM_UI_LLAMAFACTORY_PYTHON names no Python with it")
@pytest.mark.parametrize("form", ["alpaca", "sharegpt"])
@pytest.mark.parametrize("name", ["sft_level1", "preference_level3"])
def test_llama_factory_reads_its_export(
    corpus: Path, samples: list[Sample], tmp_path: Path, form: str, name: str
) -> None:
    export(corpus, form, tmp_path / "out")
    stage = "rm" if name.startswith("preference") else "sft"
    model = tiny_llama(tmp_path / "model")
    done = subprocess.run(
        [FACTORY, "-c", READER, str(tmp_path / "out"), str(model), name, stage],
        env={"PATH": os.environ["PATH"], "DISABLE_VERSION_CHECK": "1", "HF_HUB_OFFLINE": "1",
             "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    read = json.loads(done.stdout.partition("READ")[2].splitlines()[0])
    part = of_part(samples, name)
    assert len(read["whole"]) == len(part)
    for whole, said, sample in zip(read["whole"], read["said"], part, strict=True):
        assert all(sample.chat[0].content in text for text in whole)
        assert all(sample.chat[1].content in text for text in whole)
        sides = [sample.response] if stage == "sft" else [sample.response, sample.rejected]
        assert [text.replace("</s>", "").strip() for text in said] == sides


# -- what all share ---------------------------------------------------------------------------


def test_some_levels_only(corpus: Path, tmp_path: Path) -> None:
    written = export(corpus, "trl", tmp_path / "out", levels=[2])
    assert [path.name for path in written] == ["sft_level2.jsonl"]


async def test_several_corpora_together(
    corpus: Path, samples: list[Sample], tmp_path: Path
) -> None:
    more = tmp_path / "more"
    await synthesize(
        PhoneEnvironment, Models.scripted(), jobs(4), more, held_out=HELD_OUT, config=FEW
    )
    export([corpus, more], "alpaca", tmp_path / "out")
    rows = [json.loads((tmp_path / "out" / f"{part}.json").read_text()) for part in PARTS[:3]]
    union = {s.id for s in samples} | {s.id for s in read_corpus(more)}
    assert sum(map(len, rows)) == len(union)
    assert len(union) < len(samples) + len(list(read_corpus(more)))


def test_exports_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"expected one of {', '.join(FORMATS)}"):
        export(corpus, "parquet", tmp_path / "out")
    with pytest.raises(ConfigError, match="no corpus in"):
        export(tmp_path, "trl", tmp_path / "out")
    with pytest.raises(ConfigError, match="no samples of level 4"):
        export(corpus, "trl", tmp_path / "out", levels=[4])
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds no datasets"):
        export(corpus, "datasets", mine)
    assert (mine / "thesis.txt").exists()
    task = Counter(job[0] for job in jobs(3)).most_common(1)[0][0]
    with pytest.raises(ConfigError, match=f"task '{task}'"):
        export(corpus, "trl", tmp_path / "out", held_out=HeldOut.of(tasks=[task]))
    assert not (tmp_path / "out").exists()
