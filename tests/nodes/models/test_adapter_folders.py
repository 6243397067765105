"""What an adapter's folder says of its training, and folders made from one adapter."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
import torch
from local_models import disturb
from tiny_causal import save_llama

from swarm_ui.adapter_metadata import (
    fingerprint,
    read_metadata,
    write_metadata,
)
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation


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


@pytest.mark.parametrize(("able", "kind"), [(True, torch.bfloat16), (False, torch.float32)])
def test_bfloat16_is_kept_where_the_processor_computes_it(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, able: bool, kind: torch.dtype
) -> None:
    half = CausalModel.named(str(base), dtype=torch.bfloat16)
    for part in (half.network, half.tokenizer):
        part.save_pretrained(tmp_path)
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": able})
    found = CausalModel.named(str(tmp_path))
    assert found.network.dtype == kind and found.base_fingerprint() == half.base_fingerprint()
    assert CausalModel.named(str(tmp_path), dtype=torch.bfloat16).network.dtype == torch.bfloat16
