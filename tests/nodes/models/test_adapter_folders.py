"""What an adapter's folder says of its training, and folders made from one adapter."""

from __future__ import annotations

import errno
import resource
import shutil
from pathlib import Path

import msgspec
import pytest
import torch
from local_models import disturb, untrained
from tiny_causal import save_llama

from swarm_ui.adapter_metadata import (
    METADATA_FILE,
    fingerprint,
    read_metadata,
    write_metadata,
)
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def saved(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adapters of a model with the compact format."""
    model = CausalModel.named(str(base), prompt_format="compact")
    for k in range(2):
        model.add_adapter(f"agent_{k}", rank=2, alpha=8)
        disturb(model, f"agent_{k}", k)
    folder = tmp_path_factory.mktemp("adapters")
    model.save_adapters(folder)
    return folder


def screen() -> Decision:
    elements = (Element(index=0, role="button", text="on"),)
    return Decision(observation=Observation(goal="light", elements=elements))


def altered(source: Path, folder: Path, **fields: str) -> Path:
    """A copy of one adapter with other metadata."""
    known = read_metadata(source)
    shutil.copytree(source, folder)
    write_metadata(folder, msgspec.structs.replace(known, **fields))
    return folder


# -- metadata ---------------------------------------------------------------------------------


def test_an_adapter_keeps_its_format_and_its_base(base: Path, saved: Path, tmp_path: Path) -> None:
    found = read_metadata(saved / "agent_1")
    assert (found.prompt_format, found.base_model) == ("compact", "tiny")
    model = CausalModel.named(str(base))  # its own format is json
    assert found.base_fingerprint == model.base_fingerprint() and found.made_by
    model.load_adapters(saved)
    assert [model.format_of(name) for name in (None, "agent_0", "agent_1@0")] == [
        "json", "compact", "compact",
    ]  # fmt: skip
    plain = model.encode(screen(), '{"action_type": "click", "index": 0}')
    assert len(plain[0]) > 1000  # the base is asked in json
    model.save_adapters(tmp_path / "again")
    assert read_metadata(tmp_path / "again" / "agent_1") == found


def test_a_copy_has_the_metadata_of_its_source(base: Path, saved: Path) -> None:
    model = CausalModel.named(str(base))
    model.load_adapter(saved / "agent_0", "one")
    model.add_adapter("two", rank=2, alpha=8, copy_from="one")
    model.add_adapter("new", rank=2)
    assert model.metadata("two") == model.metadata("one")
    assert model.format_of("new") == "json"
    with pytest.raises(ConfigError, match="no adapter 'nobody'"):
        model.metadata("nobody")


def test_a_leased_version_keeps_its_format(base: Path, saved: Path, tmp_path: Path) -> None:
    model = CausalModel.named(str(base))
    model.load_adapter(saved / "agent_0", "one")
    version = model.lease("one")
    model.load_adapter(altered(saved / "agent_1", tmp_path / "x", prompt_format="json"), "one")
    assert (model.format_of(version), model.format_of("one")) == ("compact", "json")
    model.release(version)
    assert model.format_of("one") == "json"


def test_an_adapter_of_another_base_is_refused_and_costs_nothing(
    saved: Path, tmp_path: Path
) -> None:
    other = CausalModel.named(str(save_llama(tmp_path / "other", seed=1)))
    for load in (
        lambda: other.load_adapter(saved / "agent_0", "one"),
        lambda: other.load_adapters(saved),
    ):
        with pytest.raises(ConfigError, match=r"base, 'tiny' .* and this is 'other'") as e:
            load()
        assert "\n" not in str(e.value)
    assert other.adapters == ()
    one = altered(saved / "agent_0", tmp_path / "any", base_fingerprint="")
    assert other.load_adapter(one, "one") == "one@0"


def test_the_fingerprint_is_that_of_the_weights(base: Path) -> None:
    model = CausalModel.named(str(base))
    known = model.base_fingerprint()
    assert len(known) == 32
    assert CausalModel.named(str(base), dtype=torch.bfloat16).base_fingerprint() == known
    model.add_adapter("one", rank=2)
    disturb(model, "one", 1)
    assert model.base_fingerprint() == known
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.mul_(1.01)
    assert model.base_fingerprint() != known
    weights = [torch.ones(3, 4), torch.zeros(5)]
    assert fingerprint(weights) == fingerprint(weights[::-1])
    assert fingerprint(weights) != fingerprint([torch.ones(4, 3), torch.zeros(5)])
    assert fingerprint([*weights, torch.zeros(4, dtype=torch.uint8)]) == ""  # quantised


@pytest.mark.parametrize("text", [
    "", "[]", "{", '{"prompt_format": 3}', '{"base_model": "' + "x" * 300 + '"}', "[" * 5000,
    '{"made_by": "' + "x" * 70_000 + '"}', "\xff",
])  # fmt: skip
def test_metadata_that_cannot_be_read_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / METADATA_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match="is not the metadata of an adapter") as e:
        read_metadata(tmp_path)
    assert len(str(e.value)) < 700


# -- import -----------------------------------------------------------------------------------


def test_weights_that_do_not_fit_on_the_disk_are_an_error_of_the_system(tmp_path: Path) -> None:
    """As all other writes: training and its checkpoints say then in one line what to do."""
    model = untrained()
    model.add_adapter("one", rank=64)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as found:
            model.save_adapters(tmp_path / "adapters")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found.value.errno == errno.EFBIG
