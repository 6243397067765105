"""Tiny vision-language models with random weights, their processors, and pictures for them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import torch
from PIL import Image, ImageDraw
from tiny_causal import tokenizer
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedModel,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)

KINDS = ["llava", "idefics3", "smolvlm", "qwen2_vl"]
_IMAGE = {"llava": "<image>", "idefics3": "<image>", "smolvlm": "<image>",
          "qwen2_vl": "<|image_pad|>"}  # fmt: skip
_MARKS = {
    "llava": [],
    "idefics3": ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    + [f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2)],
    "qwen2_vl": ["<|vision_start|>", "<|vision_end|>", "<|video_pad|>"],
}
_MARKS["smolvlm"] = _MARKS["idefics3"]


def template(kind: str) -> str:
    """A chat template that reads turns of several parts."""
    around = ("<|vision_start|>", "<|vision_end|>") if kind == "qwen2_vl" else ("", "")
    return (
        "{% for m in messages %}<|{{ m.role }}|>{% for part in m.content %}"
        "{% if part.type == 'image' %}" + around[0] + _IMAGE[kind] + around[1] + "{% else %}"
        "{{ part.text }}{% endif %}{% endfor %}{{ eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )


def processor(kind: str) -> Any:
    words: Any = tokenizer(template(kind))
    words.add_special_tokens({"additional_special_tokens": [_IMAGE[kind], *_MARKS[kind]]})
    more = {"chat_template": words.chat_template}
    if kind == "llava":
        sizes = {"shortest_edge": 24}, {"height": 24, "width": 24}
        pictures: Any = CLIPImageProcessorPil(size=sizes[0], crop_size=sizes[1])
        return LlavaProcessor(
            pictures, words, patch_size=8, vision_feature_select_strategy="default",
            num_additional_image_tokens=1, **more,
        )  # fmt: skip
    if kind == "qwen2_vl":
        pictures = Qwen2VLImageProcessorPil(
            patch_size=4, merge_size=2, temporal_patch_size=2,
            size={"shortest_edge": 64, "longest_edge": 1024},
        )  # fmt: skip
        return QwenReader(pictures, words)
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 16}, do_image_splitting=True
    )
    return Idefics3Processor(pictures, words, image_seq_len=4, **more)


class QwenReader:
    """Does what Qwen2VLProcessor does with pictures, which itself needs torchvision."""

    image_token = _IMAGE["qwen2_vl"]

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        self.image_processor, self.tokenizer = image_processor, tokenizer
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        self.chat_template = tokenizer.chat_template

    def __call__(self, text: str, images: Any = None, **settings: Any) -> dict[str, torch.Tensor]:
        sights = self.image_processor(images=images, return_tensors="pt") if images else {}
        for grid in sights.get("image_grid_thw", []):
            many = "<|placeholder|>" * (int(grid.prod()) // self.image_processor.merge_size**2)
            text = text.replace(self.image_token, many, 1)
        text = text.replace("<|placeholder|>", self.image_token)
        read = self.tokenizer(text, **settings)
        return {**read, **sights}


def network(kind: str, reader: Any) -> PreTrainedModel:
    """With random weights that are large enough to give decided answers."""
    words, image = len(reader.tokenizer), reader.tokenizer.convert_tokens_to_ids(_IMAGE[kind])
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    language: dict[str, Any] = {
        "vocab_size": words, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048, **ends,
    }  # fmt: skip
    sight: dict[str, Any] = {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 2, "patch_size": 4,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made: PreTrainedModel
        if kind == "llava":
            made = LlavaForConditionalGeneration(
                LlavaConfig(
                    vision_config=CLIPVisionConfig(
                        **sight | {"patch_size": 8}, image_size=24, projection_dim=16
                    ),
                    text_config=LlamaConfig(**language),
                    image_token_index=image,
                    vision_feature_layer=-1,
                )
            )
        elif kind == "qwen2_vl":
            rotation = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
            made = Qwen2VLForConditionalGeneration(
                Qwen2VLConfig(
                    text_config=language | {"rope_parameters": rotation},
                    vision_config={
                        "depth": 2, "embed_dim": 16, "hidden_size": 32, "num_heads": 2,
                        "mlp_ratio": 2, "patch_size": 4, "spatial_merge_size": 2,
                        "temporal_patch_size": 2, "in_channels": 3,
                    },
                    image_token_id=image,
                    video_token_id=image + 3,
                    vision_start_token_id=image + 1,
                    vision_end_token_id=image + 2,
                )
            )  # fmt: skip
        else:
            config, build = (
                (Idefics3Config, Idefics3ForConditionalGeneration)
                if kind == "idefics3"
                else (SmolVLMConfig, SmolVLMForConditionalGeneration)
            )
            made = build(
                config(
                    vision_config={**sight, "image_size": 16},
                    text_config={**language, "model_type": "llama"},
                    image_token_id=image,
                    scale_factor=2,
                )
            )
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if weight.dim() > 1 and "norm" not in name:
                    weight.mul_(8 if "vision" not in name and "visual" not in name else 3)
    for setting, value in ends.items():
        setattr(made.generation_config, setting, value)
    return made


def picture(number: int = 0, size: tuple[int, int] = (24, 40)) -> bytes:
    """A PNG file that differs by number."""
    image = Image.new("RGB", size, (40 * number % 256, 200 - 50 * number % 200, 90))
    ImageDraw.Draw(image).rectangle((number, 2, 10 + 3 * number, 12), fill=(255, 255, 0))
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
