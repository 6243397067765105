"""Fine-tuning that goes on from an adapter."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus_fakes import scripted_corpus, tiny_llama
from msgspec.structs import replace
from safetensors.torch import load_file

from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1 import CorpusConfig, FinetuneConfig, finetune
from swarm_ui.optim.stage1.finetune.finetune import WEIGHTS

SHORT = CorpusConfig(
    prompt_format="compact", reasons=False, questions=2, screens=1, levels=(1,), messages=0.0
)
LORA = FinetuneConfig(
    max_steps=2, batch_size=2, accumulate=1, max_length=512, bf16=False, rank=4, learning_rate=1e-2
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    asyncio.run(scripted_corpus(folder, 3, SHORT))
    return folder


@pytest.fixture(scope="module")
def adapter(model: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "out"
    finetune(model, corpus, out, config=LORA)
    return out / "final"


def weights(folder: Path) -> dict[str, Any]:
    return load_file(folder / WEIGHTS)


def test_training_goes_on_from_the_weights_of_the_adapter(
    model: Path, corpus: Path, adapter: Path, tmp_path: Path
) -> None:
    still = replace(LORA, learning_rate=1e-12, rank=64)  # the rank is that of the adapter
    finetune(model, corpus, tmp_path / "same", config=still, adapter=adapter)
    before, after = weights(adapter), weights(tmp_path / "same/final")
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    finetune(model, corpus, tmp_path / "more", config=LORA, adapter=adapter)
    more = weights(tmp_path / "more/final")
    assert any(not torch.equal(before[name], more[name]) for name in before)


def test_an_interrupted_training_goes_on_only_with_the_same_adapter(
    model: Path, corpus: Path, adapter: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = finetune(model, corpus, out, config=LORA, adapter=adapter)
    assert finetune(model, corpus, out, config=LORA, adapter=adapter) == done
    with pytest.raises(ConfigError, match="adapter"):
        finetune(model, corpus, out, config=LORA)


def test_an_adapter_that_does_not_fit_is_refused_before_training(
    model: Path, corpus: Path, adapter: Path, tmp_path: Path
) -> None:
    def refused(match: str, base: Path = model, start: Path = adapter, **settings: Any) -> None:
        with pytest.raises(ConfigError, match=match):
            changed = replace(LORA, **settings)
            finetune(base, corpus, tmp_path / "out", config=changed, adapter=start)

    refused("only with method='lora'", method="full")
    refused("'layers' is for a new adapter", layers=(0,))
    refused("no adapter in", start=tmp_path / "nothing")
    json_format = tmp_path / "json"
    shutil.copytree(adapter, json_format)
    about = json.loads((adapter / "swarm_ui.json").read_text())
    about["prompt_format"] = "json"
    (json_format / "swarm_ui.json").write_text(json.dumps(about))
    refused("prompt format 'json'", start=json_format)
    assert not (tmp_path / "out").exists()
    other = tiny_llama(tmp_path / "other", layers=2)
    refused("another base", base=other)
