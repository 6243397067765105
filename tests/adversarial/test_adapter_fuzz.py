"""Mutated adapter files: each is refused with one typed error, or is plain LoRA, and loads so."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from local_models import untrained, with_adapters

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.transformers.adapter_files import read_adapter, read_versions

CONFIG, WEIGHTS, VERSIONS = "adapter_config.json", "adapter_model.safetensors", "versions.json"
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 4, 10**9, 10**30, 0.5, -0.0, 1e308, "", "x", "pissa", "olora",
    "gaussian", "LORA", "all", "none", "all-linear", "q_proj", "(a+)+$", "\x00", "é" * 300,
    [], ["q_proj"], ["."], [[]], [None], {}, {"q_proj": 4}, {"": 1}, {"a": {"b": []}},
)  # fmt: skip
KEYS = (
    "base_model.model.lm_head.weight", "base_model.model.model.embed_tokens.weight", "x", "",
    "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight", "__metadata__",
    "base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight", "\u2028", "a" * 5000,
)  # fmt: skip


class Mutator:
    """Draws damaged copies of the files of a sound adapter."""

    def __init__(self, sound: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.config = (sound / CONFIG).read_bytes()
        self.weights = (sound / WEIGHTS).read_bytes()

    def write(self, folder: Path) -> None:
        """Write one adapter with damage in its configuration, its weights, or both."""
        where = self.rng.choice(("config", "weights", "weights", "both"))
        config = self._config() if where != "weights" else self.config
        weights = self._weights() if where != "config" else self.weights
        (folder / CONFIG).write_bytes(config)
        (folder / WEIGHTS).write_bytes(weights)

    def versions(self) -> bytes:
        """A damaged list of adapters."""
        names = ("agent_0", "", "../x", "é", "a.b")
        return self._bytes(
            json.dumps({self.rng.choice(names): self.rng.choice(ODD)}).encode(), rate=0.3
        )

    def _config(self) -> bytes:
        fields: dict[str, Any] = json.loads(self.config)
        for _ in range(self.rng.choice((1, 1, 1, 2, 5))):
            name = self.rng.choice([*fields, "init_lora_weights", "r", "target_modules", "odd"])
            if self.rng.random() < 0.1:
                fields.pop(name, None)
            else:
                fields[name] = self.rng.choice(ODD)
        return self._bytes(json.dumps(fields).encode(), rate=0.3)

    def _weights(self) -> bytes:
        size = int.from_bytes(self.weights[:8], "little")
        header: dict[str, Any] = json.loads(self.weights[8 : 8 + size])
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self._header(header)
        text = self._bytes(json.dumps(header).encode(), rate=0.1)
        length = len(text) if self.rng.random() > 0.05 else self.rng.choice((0, 2**63, 10**7, 7))
        whole = length.to_bytes(8, "little") + text + self.weights[8 + size :]
        return self._bytes(whole, rate=0.3)

    def _header(self, header: dict[str, Any]) -> None:
        key = self.rng.choice(list(header))
        entry = header[key]
        what = self.rng.randrange(5)
        if what == 0:
            header[self.rng.choice(KEYS)] = header.pop(key)
        elif what == 1:
            header.pop(key)
        elif isinstance(entry, dict) and "shape" in entry:
            field = self.rng.choice(("shape", "dtype", "data_offsets"))
            entry[field] = self.rng.choice([
                *ODD, [4, 32], [32, 4], [128], [2, 64], [1, 4, 32], [0, 2**40], [2**40, 2**41],
                "F16", "BF16", "I32", "U8", "F64", "BOOL", entry[field],
            ])  # fmt: skip
        else:
            header[key] = self.rng.choice(ODD)

    def _bytes(self, data: bytes, rate: float) -> bytes:
        """Sometimes: bytes changed, cut off, doubled or added."""
        if self.rng.random() >= rate or not data:
            return data
        at = self.rng.randrange(len(data))
        how = self.rng.randrange(4)
        if how == 0:
            return data[:at]
        if how == 1:
            return data[:at] + data[self.rng.randrange(len(data)) :]
        if how == 2:
            return data[:at] + self.rng.randbytes(self.rng.choice((1, 8))) + data[at:]
        changed = bytearray(data)
        for _ in range(self.rng.choice((1, 2, 16))):
            changed[self.rng.randrange(len(data))] = self.rng.randrange(256)
        return bytes(changed)


@pytest.mark.parametrize(
    "inputs",
    [
        200,
        pytest.param(2_000, marks=pytest.mark.slow),
        pytest.param(200_000, marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(7200)
def test_mutated_adapters_are_refused_or_plain(tmp_path: Path, inputs: int) -> None:
    source = with_adapters(1)
    source.save_adapters(tmp_path / "sound")
    mutator = Mutator(tmp_path / "sound" / "agent_0", seed=inputs)
    folder = tmp_path / "mutated"
    shutil.copytree(tmp_path / "sound" / "agent_0", folder)
    model = untrained()
    model.add_adapter("own", rank=4)
    base = {key: value.clone() for key, value in model.base_weights().items()}
    every = max(1 if inputs < 2_000 else 8, inputs // 2_000)
    seen: Counter[str] = Counter()
    for number in range(inputs):
        mutator.write(folder)
        try:
            adapter = read_adapter(folder)
        except ConfigError:
            seen["refused"] += 1
        else:
            seen["read"] += 1
            assert adapter.config().init_lora_weights is True
            assert not any(".lora_" in key or "base_layer" in key for key in adapter.weights)
            if (seen["read"] - 1) % every == 0:
                try:
                    model.load_adapter(folder, "guest")
                    seen["loaded"] += 1
                except ConfigError:
                    seen["did not fit"] += 1
                now = model.base_weights()
                assert all(torch.equal(value, now[key]) for key, value in base.items()), number
        if number % 10 == 0:
            (folder / VERSIONS).write_bytes(mutator.versions())
            try:
                read_versions(folder)
            except ConfigError:
                seen["lists refused"] += 1
    print(f"{inputs} inputs: {dict(seen)}")
    assert seen["refused"] + seen["read"] == inputs
    assert all(seen[kind] for kind in ("refused", "read", "loaded", "lists refused"))
