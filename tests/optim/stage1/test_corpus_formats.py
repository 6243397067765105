"""Corpora in short prompts, from recordings and invented screens; and what one would take."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from corpus_fakes import FEW, scripted_corpus
from msgspec.structs import replace

from swarm_ui.action import Action, parse_action
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1 import (
    Sample,
    export,
    read_corpus,
)
from swarm_ui.prompts import FORMATS

SHORT = replace(FEW, prompt_format="compact", reasons=False, messages=1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus") / "short"
    asyncio.run(scripted_corpus(place, 4, SHORT))
    return place


@pytest.fixture(scope="module")
def samples(folder: Path) -> list[Sample]:
    return list(read_corpus(folder))


def screen_of(sample: Sample) -> Observation:
    """The elements of a compact prompt."""
    lines = sample.chat[-1].content.split("Screen:\n")[1].splitlines()
    elements = []
    for index, line in enumerate(lines):
        label, mark, _ = line.partition(f"[{index}]")
        if mark:
            elements.append(Element(index=index, role="button", text=label.strip()))
    return Observation(goal="", elements=tuple(elements))


def test_every_level_is_written_in_the_format(samples: list[Sample]) -> None:
    assert {sample.level for sample in samples} == {1, 2, 3}
    for sample in samples:
        assert sample.prompt_format == "compact"
        assert sample.chat[-1].content.startswith("Goal: ")
        for text in filter(None, (sample.response, sample.rejected)):
            action = FORMATS["compact"].parse(text, screen_of(sample))
            assert isinstance(action, Action), text
            assert "\n" not in text  # no reasons
            assert sample.level > 1 or action.action_type == "answer"


def test_reasons_can_be_kept_or_left_out(tmp_path: Path) -> None:
    for name, config in (
        ("short", replace(SHORT, reasons=True, levels=(3,))),
        ("long", replace(FEW, reasons=False, levels=(3,))),
    ):
        asyncio.run(scripted_corpus(tmp_path / name, 1, config))
    with_reason = next(iter(read_corpus(tmp_path / "short"))).response.splitlines()
    assert len(with_reason) == 2
    assert isinstance(FORMATS["compact"].parse(with_reason[1], Observation(goal="", elements=())),
                      Action) or "[" in with_reason[1]  # fmt: skip
    bare = next(iter(read_corpus(tmp_path / "long"))).response
    assert bare.startswith("{") and isinstance(parse_action(bare), Action)


def test_corpora_of_two_formats_are_not_mixed(folder: Path, tmp_path: Path) -> None:
    asyncio.run(scripted_corpus(tmp_path / "long", 1, replace(FEW, levels=(1,))))
    with pytest.raises(ConfigError):
        export([folder, tmp_path / "long"], tmp_path / "out")
    with pytest.raises(ConfigError):
        asyncio.run(scripted_corpus(tmp_path / "long", 1, SHORT))
