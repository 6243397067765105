"""Exports, each read back by the library it is for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from corpus_fakes import scripted_corpus, tiny_llama

from swarm_ui.optim.stage1 import Sample, export, read_corpus

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


async def test_several_corpora(corpus: Path, samples: list[Sample], tmp_path: Path) -> None:
    more = tmp_path / "more"
    await scripted_corpus(more, 4)
    written = export([corpus, more], tmp_path / "both")
    count = sum(len(path.read_text().splitlines()) for path in written[:3])
    union = {s.id for s in samples} | {s.id for s in read_corpus(more)}
    assert count == len(union) < len(samples) + len(list(read_corpus(more)))
