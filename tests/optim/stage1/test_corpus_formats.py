"""Corpora in short prompts, from recordings and invented screens; and what one would take."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from corpus_fakes import FEW, HELD_OUT, Ventriloquist, jobs, scripted_corpus
from msgspec.structs import replace
from small_world import Bare

from swarm_ui.action import Action, parse_action
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, Sample, read_corpus, synthesize
from swarm_ui.optim.stage1.corpus.estimate import estimate_synthesis
from swarm_ui.optim.stage1.corpus.store import corpus_format
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


def test_messages_are_written_in_the_format(samples: list[Sample]) -> None:
    heard = [s for s in samples if s.heard]
    assert heard and all("\nMessages:\nagent_" in s.chat[-1].content for s in heard)
    assert not any("action_type" in s.chat[-1].content for s in samples)


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


def test_models_may_write_a_corpus_of_short_prompts(tmp_path: Path) -> None:
    """They are asked in words, whatever the format of the samples is."""
    model = Ventriloquist().model
    models = Models(agent=model, adversary=model, critic=model)
    done = asyncio.run(
        synthesize(Bare, models, [("write", 0)], tmp_path / "c", held_out=HeldOut(), config=SHORT)
    )
    assert done.successes == 1
    assert {s.prompt_format for s in read_corpus(tmp_path / "c")} == {"compact"}


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="no prompt format 'morse'"):
        CorpusConfig(prompt_format="morse")


def test_corpora_of_two_formats_are_not_mixed(folder: Path, tmp_path: Path) -> None:
    asyncio.run(scripted_corpus(tmp_path / "long", 1, replace(FEW, levels=(1,))))
    assert corpus_format(folder) == "compact"
    with pytest.raises(ConfigError, match=r"'.*long' has 'json': a model learns one format"):
        corpus_format([folder, tmp_path / "long"])
    with pytest.raises(ConfigError, match="prompt_format 'json', now 'compact'"):
        asyncio.run(scripted_corpus(tmp_path / "long", 1, SHORT))


# -- estimates --------------------------------------------------------------------------------


async def test_an_estimate_is_near_what_is_made(tmp_path: Path) -> None:
    config = replace(SHORT, messages=0.0)
    size = await estimate_synthesis(
        PhoneEnvironment, jobs(8), by_model=frozenset(), critic=True, held_out=HELD_OUT,
        config=config,
    )  # fmt: skip
    done = await scripted_corpus(tmp_path / "c", 8, config)
    assert size.walks == size.measured == done.walks and size.samples == done.samples
    assert size.calls == size.prompt_tokens == 0 and size.tokens > 0


async def test_calls_are_counted_for_the_roles_of_models(tmp_path: Path) -> None:
    """As many as models are really asked, where one of them plays all roles."""
    model = Ventriloquist()
    walks = [("write", 0), ("write", 1)]
    roles = frozenset({"agent", "adversary", "critic"})
    config = replace(FEW, messages=0.0)
    size = await estimate_synthesis(
        Bare, walks, by_model=roles, critic=True, held_out=HeldOut(), config=config
    )
    assert size.measured == 0 and model.calls == 0
    assert size.calls > 0 and size.prompt_tokens > 100 * size.calls
    alone = await estimate_synthesis(
        PhoneEnvironment, jobs(2), by_model=frozenset({"agent"}), critic=False, held_out=HELD_OUT,
        config=config,
    )  # fmt: skip
    assert alone.steps < alone.calls <= alone.steps + 2 * 2 * config.screens


async def test_an_estimate_refuses_what_is_held_out() -> None:
    with pytest.raises(ConfigError, match="is held out"):
        await estimate_synthesis(
            _bare, [("write", 5)], by_model=frozenset({"agent"}), critic=False,
            held_out=HeldOut.of(seeds=[range(9)]), config=FEW,
        )  # fmt: skip


def _bare() -> Environment:
    return Bare()
