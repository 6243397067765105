"""An adapter is a stranger's file: it may be refused, but it never changes the shared base."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from cli_world import Shell, shell  # noqa: F401
from local_models import disturb, untrained, with_adapters
from safetensors.torch import load_file, save_file

from swarm_ui.errors import ConfigError
from swarm_ui.nodes import LocalModel

Weights = dict[str, torch.Tensor]
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LAYER = "base_model.model.model.layers.0.self_attn.q_proj"
HARMLESS = (True, False, "gaussian", "eva", "orthogonal")
FROM_THE_BASE = ("pissa_niter_4", "PiSSA", "olora", "corda", "loftq", "lora_ga", "mica")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two sound adapters."""
    folder = tmp_path_factory.mktemp("saved")
    with_adapters(2).save_adapters(folder)
    return folder


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """A model with one adapter of its own, which every test leaves as it was."""
    made = untrained()
    made.add_adapter("own", rank=4, alpha=8)
    disturb(made, "own", 3)
    return made


def changed(source: Path, folder: Path, **fields: object) -> Path:
    """A copy of an adapter with other fields in its configuration."""
    shutil.copytree(source, folder)
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return folder


def rewritten(
    source: Path, folder: Path, change: Callable[[dict[str, torch.Tensor]], None]
) -> Path:
    """A copy of an adapter with other weights."""
    shutil.copytree(source, folder)
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS)
    return folder


@contextmanager
def nothing_changes(model: LocalModel) -> Iterator[None]:
    """The base, the other adapters and their versions are the same before and after."""
    base = {key: value.clone() for key, value in model.base_weights().items()}
    own = [p.detach().clone() for p in model.adapter_parameters("own")]
    yield
    now = model.base_weights()
    assert now.keys() == base.keys()
    assert [key for key, value in base.items() if not torch.equal(value, now[key])] == []
    assert all(map(torch.equal, own, model.adapter_parameters("own")))
    assert {*model.adapters} <= {"own", "guest"}


@pytest.mark.parametrize("start", HARMLESS)
def test_loading_and_swapping_leave_the_base(
    model: LocalModel, saved: Path, tmp_path: Path, start: object
) -> None:
    one = changed(saved / "agent_0", tmp_path / "one", init_lora_weights=start)
    with nothing_changes(model):
        model.load_adapter(one, "guest")
        model.load_adapter(saved / "agent_1", "guest")
        model.load_adapter(one, "guest")


@pytest.mark.parametrize("start", FROM_THE_BASE)
def test_an_adapter_that_begins_from_the_base_is_refused(
    model: LocalModel, saved: Path, tmp_path: Path, start: str
) -> None:
    folder = changed(saved / "agent_0", tmp_path / "x", init_lora_weights=start)
    with nothing_changes(model), pytest.raises(ConfigError, match="plain LoRA"):
        model.load_adapter(folder, "guest")
    plain = untrained()  # the first adapter of a model takes another way through peft
    with pytest.raises(ConfigError, match="plain LoRA"):
        plain.load_adapter(folder, "guest")
    assert plain.adapters == ()


@pytest.mark.parametrize("field, value", [
    ("use_dora", True), ("use_qalora", True), ("modules_to_save", ["lm_head"]),
    ("trainable_token_indices", [1]), ("target_parameters", ["x"]), ("lora_bias", True),
    ("layer_replication", [[0, 2], [0, 2]]), ("corda_config", {"corda_method": "ipm"}),
    ("arrow_config", {"top_k": 1}), ("use_bdlora", {"nblocks": 2}), ("kasa_config", {"beta": 1}),
    ("velora_config", {"scale": 1.0}), ("monteclora_config", {}), ("a_field_of_tomorrow", "on"),
])  # fmt: skip
def test_methods_beyond_plain_lora_are_refused(
    model: LocalModel, saved: Path, tmp_path: Path, field: str, value: object
) -> None:
    folder = changed(saved / "agent_0", tmp_path / "x", **{field: value})
    with nothing_changes(model):
        if value:
            with pytest.raises(ConfigError, match=field):
                model.load_adapter(folder, "guest")
        else:  # an empty setting is no setting
            model.load_adapter(folder, "guest")


@pytest.mark.parametrize("key", [
    "base_model.model.model.embed_tokens.weight", "base_model.model.lm_head.weight",
    f"{LAYER}.weight", f"{LAYER}.base_layer.weight", f"{LAYER}.lora_A.own.weight",
    f"{LAYER}.lora_A.own.lora_A.weight", f"{LAYER}.lora_magnitude_vector.weight",
    "base_model.model.model.embed_tokens.lora_embedding_A", "x", "",
])  # fmt: skip
def test_weights_of_anything_but_the_adapter_are_refused(
    model: LocalModel, saved: Path, tmp_path: Path, key: str
) -> None:
    def smuggle(weights: Weights) -> None:
        base = model.base_weights().get(key.removeprefix("base_model.model."))
        weights[key] = torch.ones(4, 32) if base is None else torch.full_like(base, 7.0)

    folder = rewritten(saved / "agent_0", tmp_path / "x", smuggle)
    with nothing_changes(model), pytest.raises(ConfigError, match="plain LoRA alone"):
        model.load_adapter(folder, "guest")


def test_a_claimed_size_is_compared_with_the_weights_before_memory_is_taken(
    model: LocalModel, saved: Path, tmp_path: Path
) -> None:
    for number, fields in enumerate(({"r": 10**9}, {"rank_pattern": {"q_proj": 10**9}})):
        folder = changed(saved / "agent_0", tmp_path / str(number), **fields)
        with nothing_changes(model), pytest.raises(ConfigError, match="does not fit"):
            model.load_adapter(folder, "guest")


def test_expressions_that_choose_layers_are_not_run(
    model: LocalModel, saved: Path, tmp_path: Path
) -> None:
    endless = r"(\w+\.?)+$!"
    fields: Mapping[str, object] = {"target_modules": endless, "exclude_modules": endless}
    folder = changed(saved / "agent_0", tmp_path / "x", **fields)
    with nothing_changes(model):
        model.load_adapter(folder, "guest")  # the names of its weights tell the layers
    for name in ("rank_pattern", "alpha_pattern"):
        folder = changed(saved / "agent_0", tmp_path / name, **{name: {endless: 4}})
        with nothing_changes(model), pytest.raises(ConfigError, match=name):
            model.load_adapter(folder, "guest")


DEEP = "[" * 100_000


def test_weights_that_are_cut_off_anywhere_are_one_error(
    model: LocalModel, saved: Path, tmp_path: Path
) -> None:
    folder = changed(saved / "agent_0", tmp_path / "x")
    whole = (folder / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    cuts = {0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) - 1}
    with nothing_changes(model):
        for cut in sorted(cuts):
            (folder / WEIGHTS).write_bytes(whole[:cut])
            with pytest.raises(ConfigError, match=r"readable safetensors|plain LoRA"):
                model.load_adapter(folder, "guest")
        (folder / WEIGHTS).write_bytes(b"\xff" * 8 + whole[8:])  # a header of 2**64 bytes
        with pytest.raises(ConfigError, match="readable safetensors"):
            model.load_adapter(folder, "guest")


def test_numbers_that_are_not_finite_are_refused(
    model: LocalModel, saved: Path, tmp_path: Path
) -> None:
    def spoil(weights: Weights) -> None:
        next(iter(weights.values()))[0, 0] = float("nan")

    folder = rewritten(saved / "agent_0", tmp_path / "x", spoil)
    with nothing_changes(model), pytest.raises(ConfigError, match="not finite"):
        model.load_adapter(folder, "guest")


@pytest.mark.parametrize("name, data", [
    ("model.safetensors", b"\x10\x00"), ("config.json", b"[]"), ("config.json", b"{}"),
    ("words.json", b"{"), ("words.json", b'{"a": 1}'), ("words.json", b"[1, 2]"),
    ("words.json", DEEP.encode()),
])  # fmt: skip
def test_a_damaged_agent_is_one_error(tmp_path: Path, name: str, data: bytes) -> None:
    untrained().save(tmp_path)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=r"no agent in|do not belong together"):
        LocalModel.load(tmp_path)


def test_the_command_ends_with_code_2_and_writes_nothing(
    shell: Shell,  # noqa: F811
    saved: Path,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "adapters"
    shutil.copytree(saved, folder)
    torn = folder / "agent_0" / WEIGHTS
    torn.write_bytes(torn.read_bytes()[:-1])
    before = contents(folder)
    done = shell("eval phone --model base --episodes 1 --out run --adapters", str(folder))
    assert done.code == 2 and "readable safetensors" in done.err
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
