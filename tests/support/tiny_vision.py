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
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)

KINDS = ["llava", "idefics3", "smolvlm"]
_IMAGE = "<image>"
_MARKS = {
    "llava": [],
    "idefics3": ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    + [f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2)],
}
_MARKS["smolvlm"] = _MARKS["idefics3"]


# A chat template that reads turns of several parts.
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% for part in m.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def processor(kind: str) -> Any:
    words: Any = tokenizer(TEMPLATE)
    words.add_special_tokens({"additional_special_tokens": [_IMAGE, *_MARKS[kind]]})
    more = {"chat_template": words.chat_template}
    if kind == "llava":
        sizes = {"shortest_edge": 24}, {"height": 24, "width": 24}
        pictures: Any = CLIPImageProcessorPil(size=sizes[0], crop_size=sizes[1])
        return LlavaProcessor(
            pictures, words, patch_size=8, vision_feature_select_strategy="default",
            num_additional_image_tokens=1, **more,
        )  # fmt: skip
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 16}, do_image_splitting=True
    )
    return Idefics3Processor(pictures, words, image_seq_len=4, **more)


def network(kind: str, reader: Any) -> PreTrainedModel:
    """With random weights that are large enough to give decided answers."""
    words, image = len(reader.tokenizer), reader.tokenizer.convert_tokens_to_ids(_IMAGE)
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
