"""What an adapter's folder says of its training, and folders made from one adapter."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
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
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.adapter_files import (
    adapters_in,
    one_adapter,
    save_merged,
)
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


def test_bad_folders_are_one_line(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no adapters in .*expected a run of swarm-ui train"):
        adapters_in(tmp_path)
    with pytest.raises(ConfigError, match=r"holds 2 adapters; name one of them: .*agent_0"):
        one_adapter(saved)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"missing: adapter_model.safetensors"):
        adapters_in(tmp_path)


FULL = """
import resource, sys
from pathlib import Path
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.transformers.adapter_files import save_merged
base, adapter, out = map(Path, sys.argv[1:])
model = CausalModel.named(str(base))
model.load_adapter(adapter, "one")
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    save_merged(model, "one", out)
except ConfigError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_keeps_the_old_folder(
    base: Path, saved: Path, tmp_path: Path
) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    out = tmp_path / "out"
    shutil.copytree(saved, out)
    done = subprocess.run(
        [sys.executable, "-c", FULL, base, saved / "agent_0", out],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stderr
    assert all(line.startswith(f"cannot write '{out}': ") for line in lines)
    assert [facts.name for facts in adapters_in(out)] == ["agent_0", "agent_1"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


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


# -- merge ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
async def test_a_merged_model_answers_as_the_adapter_does(tmp_path: Path, tied: bool) -> None:
    model = CausalModel.named(str(save_llama(tmp_path / "base", tied=tied)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the weights that an adapter begins with
        model.add_adapter("one", rank=2, alpha=8)
    disturb(model, "one", 3, 0.2)
    save_merged(model, "one", tmp_path / "merged")

    merged = CausalModel.named(str(tmp_path / "merged"))
    assert merged.adapters == () and merged.name == "merged" and merged.prompt_format == "json"
    chat = (ChatMessage("user", "press the button"),)
    (plain,) = await model.generate([Request(chat=chat, max_tokens=12)])
    (adapted,) = await model.generate([Request(chat=chat, max_tokens=12, adapter="one")])
    (alone,) = await merged.generate([Request(chat=chat, max_tokens=12)])
    assert alone.text == adapted.text
    assert alone.logprob == pytest.approx(adapted.logprob, abs=1e-3)
    assert alone.sampled != plain.sampled
    assert merged.base_fingerprint() != model.base_fingerprint()
    assert "lora" not in (tmp_path / "merged" / "config.json").read_text().lower()


def test_the_format_of_the_adapter_becomes_that_of_the_merged_model(
    base: Path, saved: Path, tmp_path: Path
) -> None:
    model = CausalModel.named(str(base))
    model.load_adapter(saved / "agent_0", "one")
    save_merged(model, "one", tmp_path / "merged")
    assert CausalModel.named(str(tmp_path / "merged")).prompt_format == "compact"
    with pytest.raises(ConfigError, match="prompt format 'compact', and 'json' was requested"):
        CausalModel.named(str(tmp_path / "merged"), prompt_format="json")


def test_an_adapter_of_the_shared_output_layer_cannot_be_merged(
    base: Path, saved: Path, tmp_path: Path
) -> None:
    one = altered(saved / "agent_0", tmp_path / "one")
    config = json.loads((one / "adapter_config.json").read_text())
    from safetensors.torch import save_file

    key = "base_model.model.lm_head.lora_{}.weight"
    save_file({key.format("A"): torch.ones(2, 16), key.format("B"): torch.ones(259, 2)},
              one / "adapter_model.safetensors")  # fmt: skip
    config |= {"target_modules": ["lm_head"]}
    (one / "adapter_config.json").write_text(json.dumps(config))
    model = CausalModel.named(str(base))
    model.load_adapter(one, "one")
    with pytest.raises(ConfigError, match="changes lm_head, which 'tiny' shares"):
        save_merged(model, "one", tmp_path / "merged")
