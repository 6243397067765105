"""Exports, read back by the library that they are for, and the formats of prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from corpus_fakes import FEW, scripted_corpus, tiny_llama
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1 import Sample, export, read_corpus
from swarm_ui.prompts import FORMATS

PARTS = ("sft_level1", "sft_level2", "sft_level3", "preference_level3")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "corpus"
    asyncio.run(scripted_corpus(folder, 3))
    return folder


@pytest.fixture(scope="module")
def samples(corpus: Path) -> list[Sample]:
    return list(read_corpus(corpus))


def of_part(samples: list[Sample], part: str) -> list[Sample]:
    return [s for s in samples if s.level == int(part[-1])]


def test_trl_reads_its_export(corpus: Path, samples: list[Sample], tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from datasets import load_dataset
    from trl import apply_chat_template, is_conversational

    from swarm_ui.optim.sft import load_tokenizer

    written = export(corpus, tmp_path / "out")
    assert [path.stem for path in written] == list(PARTS)
    tokenizer = load_tokenizer(tiny_llama(tmp_path / "model"))
    for path in written:
        rows = load_dataset(
            "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
        )
        part = of_part(samples, path.stem)
        pairs = path.stem.startswith("preference")
        columns = ["prompt", "chosen", "rejected"] if pairs else ["prompt", "completion"]
        assert len(rows) == len(part) and rows.column_names == columns
        for row, sample in zip(rows, part, strict=True):
            assert is_conversational(row)
            said = apply_chat_template(row, tokenizer)
            assert sample.chat[1].content in said["prompt"]
            assert said["chosen" if pairs else "completion"] == sample.response + "</s>"
            if pairs:
                assert said["rejected"] == f"{sample.rejected}</s>"


# -- formats ----------------------------------------------------------------------------------

SHORT = replace(FEW, prompt_format="compact", reasons=False, messages=1.0)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus") / "short"
    asyncio.run(scripted_corpus(place, 4, SHORT))
    return place


def screen_of(sample: Sample) -> Observation:
    """The elements of a compact prompt."""
    lines = sample.chat[-1].content.split("Screen:\n")[1].splitlines()
    elements = []
    for index, line in enumerate(lines):
        label, mark, _ = line.partition(f"[{index}]")
        if mark:
            elements.append(Element(index=index, role="button", text=label.strip()))
    return Observation(goal="", elements=tuple(elements))


def test_every_level_is_written_in_the_format(short: Path) -> None:
    samples = list(read_corpus(short))
    assert {sample.level for sample in samples} == {1, 2, 3}
    for sample in samples:
        assert sample.prompt_format == "compact"
        assert sample.chat[-1].content.startswith("Goal: ")
        for text in filter(None, (sample.response, sample.rejected)):
            action = FORMATS["compact"].parse(text, screen_of(sample))
            assert isinstance(action, Action), text
            assert "\n" not in text  # no reasons
            assert sample.level > 1 or action.action_type == "answer"


def test_corpora_of_two_formats_are_not_mixed(short: Path, tmp_path: Path) -> None:
    asyncio.run(scripted_corpus(tmp_path / "long", 1, replace(FEW, levels=(1,))))
    with pytest.raises(ConfigError):
        export([short, tmp_path / "long"], tmp_path / "out")
    with pytest.raises(ConfigError):
        asyncio.run(scripted_corpus(tmp_path / "long", 1, SHORT))
