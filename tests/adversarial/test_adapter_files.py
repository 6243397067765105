"""An adapter is a stranger's file: it may be refused, but it never changes the shared base."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from damage import Edit, damaged, edits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_models import disturb, untrained, with_adapters
from safetensors.torch import load_file, save_file

from swarm_ui.errors import ConfigError
from swarm_ui.nodes import LocalModel

Weights = dict[str, torch.Tensor]
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LAYER = "base_model.model.model.layers.0.self_attn.q_proj"
ENDLESS = r"(\w+\.?)+$!"
HARMLESS: tuple[dict[str, object], ...] = (
    *({"init_lora_weights": start} for start in (True, False, "gaussian", "eva", "orthogonal")),
    {"monteclora_config": {}},  # an empty setting is no setting
    {"target_modules": ENDLESS, "exclude_modules": ENDLESS},  # never run: the weights' names count
)
FROM_THE_BASE = ("pissa_niter_4", "PiSSA", "olora", "corda", "loftq", "lora_ga", "mica")
BEYOND: dict[str, object] = {
    "use_dora": True, "use_qalora": True, "modules_to_save": ["lm_head"], "lora_bias": True,
    "trainable_token_indices": [1], "target_parameters": ["x"],
    "layer_replication": [[0, 2], [0, 2]], "corda_config": {"corda_method": "ipm"},
    "arrow_config": {"top_k": 1}, "use_bdlora": {"nblocks": 2}, "kasa_config": {"beta": 1},
    "velora_config": {"scale": 1.0}, "a_field_of_tomorrow": "on",
    "alpha_pattern": {ENDLESS: 4},
}  # fmt: skip
REFUSED = [
    *(("plain LoRA", {"init_lora_weights": start}) for start in FROM_THE_BASE),
    *((name, {name: value}) for name, value in BEYOND.items()),
    ("rank_pattern", {"rank_pattern": {ENDLESS: 4}}),
    ("does not fit", {"r": 10**9}),  # compared with the weights before memory is taken
]


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


@pytest.fixture
def guest(saved: Path, tmp_path: Path) -> Path:
    """A copy of a sound adapter, to be changed."""
    return Path(shutil.copytree(saved / "agent_0", tmp_path / "guest"))


def configure(folder: Path, fields: dict[str, object]) -> None:
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


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


@pytest.mark.parametrize("fields", HARMLESS, ids=str)
def test_loading_and_swapping_leave_the_base(
    model: LocalModel, saved: Path, guest: Path, fields: dict[str, object]
) -> None:
    configure(guest, fields)
    with nothing_changes(model):
        for folder in (guest, saved / "agent_1", guest):
            model.load_adapter(folder, "guest")


@pytest.mark.parametrize(("told", "fields"), REFUSED, ids=str)
def test_a_configuration_beyond_plain_lora_is_refused(
    model: LocalModel, guest: Path, told: str, fields: dict[str, object]
) -> None:
    configure(guest, fields)
    with nothing_changes(model), pytest.raises(ConfigError, match=told):
        model.load_adapter(guest, "guest")
    plain = untrained()  # the first adapter of a model takes another way through peft
    with pytest.raises(ConfigError, match=told):
        plain.load_adapter(guest, "guest")
    assert plain.adapters == ()


def smuggle(key: str) -> Callable[[LocalModel, Weights], None]:
    def change(model: LocalModel, weights: Weights) -> None:
        base = model.base_weights().get(key.removeprefix("base_model.model."))
        weights[key] = torch.ones(4, 32) if base is None else torch.full_like(base, 7.0)

    return change


def spoil(model: LocalModel, weights: Weights) -> None:
    next(iter(weights.values()))[0, 0] = float("nan")


SMUGGLED = (
    "base_model.model.model.embed_tokens.weight", "base_model.model.lm_head.weight",
    f"{LAYER}.weight", f"{LAYER}.base_layer.weight", f"{LAYER}.lora_A.own.weight",
    f"{LAYER}.lora_A.own.lora_A.weight", f"{LAYER}.lora_magnitude_vector.weight",
    "base_model.model.model.embed_tokens.lora_embedding_A", "x", "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("told", "change"),
    [*(("plain LoRA alone", smuggle(key)) for key in SMUGGLED), ("not finite", spoil)],
)
def test_weights_of_anything_but_the_adapter_are_refused(
    model: LocalModel, guest: Path, told: str, change: Callable[[LocalModel, Weights], None]
) -> None:
    weights = load_file(guest / WEIGHTS)
    change(model, weights)
    save_file(weights, guest / WEIGHTS)
    with nothing_changes(model), pytest.raises(ConfigError, match=told):
        model.load_adapter(guest, "guest")


def test_weights_that_are_cut_off_anywhere_are_one_error(model: LocalModel, guest: Path) -> None:
    whole = (guest / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    cuts = (0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) - 1)
    endless = b"\xff" * 8 + whole[8:]  # a header of 2**64 bytes
    with nothing_changes(model):
        for data in (*(whole[:cut] for cut in cuts), endless):
            (guest / WEIGHTS).write_bytes(data)
            with pytest.raises(ConfigError, match=r"readable safetensors|plain LoRA"):
                model.load_adapter(guest, "guest")


ODD = st.sampled_from([
    None, True, False, 0, -1, 1, 4, 10**9, 10**30, 0.5, 1e308, "", "x", "pissa", "gaussian",
    "all-linear", "q_proj", "(a+)+$", "\x00", "é" * 300, [], ["."], [[]], {}, {"q_proj": 4},
    {"a": {"b": []}}, [4, 32], [128], [0, 2**40], [2**40, 2**41], "F16", "I32", "F64",
])  # fmt: skip
FIELDS = st.sampled_from(["init_lora_weights", "r", "lora_alpha", "target_modules", "peft_type",
                          "bias", "rank_pattern", "task_type", "odd"])  # fmt: skip
PARTS = st.sampled_from(["shape", "dtype", "data_offsets"])


def reheaded(data: bytes, changes: dict[str, Any]) -> bytes:
    """Weights whose first entry says something else of itself."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header[next(key for key in header if key != "__metadata__")] |= changes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def fuzz(model: LocalModel, saved: Path, folder: Path, examples: int) -> set[str]:
    """Load mutated adapters; what became of them."""
    sound = {name: (saved / "agent_0" / name).read_bytes() for name in (CONFIG, WEIGHTS)}
    seen = set[str]()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(
        st.dictionaries(FIELDS, ODD, max_size=2), st.dictionaries(PARTS, ODD, max_size=1),
        edits(most=1), edits(most=1),
    )  # fmt: skip
    def run(
        fields: dict[str, Any], header: dict[str, Any], first: list[Edit], second: list[Edit]
    ) -> None:
        config = json.dumps(json.loads(sound[CONFIG]) | fields).encode()
        (folder / CONFIG).write_bytes(damaged(config, first))
        (folder / WEIGHTS).write_bytes(damaged(reheaded(sound[WEIGHTS], header), second))
        try:
            model.load_adapter(folder, "guest")
            seen.add("loaded")
        except ConfigError:
            seen.add("refused")

    with nothing_changes(model):
        run()
    return seen


@pytest.mark.parametrize("examples", [75, pytest.param(20_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(7200)
def test_mutated_adapters_are_refused_or_plain(
    model: LocalModel, saved: Path, guest: Path, examples: int
) -> None:
    assert fuzz(model, saved, guest, examples) == {"loaded", "refused"}


@pytest.mark.parametrize("name, data", [
    ("model.safetensors", b"\x10\x00"), ("config.json", b"[]"), ("config.json", b"{}"),
    ("words.json", b"{"), ("words.json", b'{"a": 1}'), ("words.json", b"[1, 2]"),
    ("words.json", b"[" * 100_000),
])  # fmt: skip
def test_a_damaged_agent_is_one_error(tmp_path: Path, name: str, data: bytes) -> None:
    untrained().save(tmp_path)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=r"no agent in|do not belong together"):
        LocalModel.load(tmp_path)
