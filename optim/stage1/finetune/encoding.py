"""Converts samples to tokens, and handles samples that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1.corpus.exports import Row, conversational
from swarm_ui.optim.stage1.corpus.samples import Sample
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.optim.stage1.finetune.weights import UNLOADABLE

_PLAIN = (
    "{{ bos_token or '' }}{% for turn in messages %}"
    "{% if turn['role'] == 'assistant' %}Assistant:{{ turn['content'] }}{{ eos_token }}"
    "{% else %}{{ turn['role'] | capitalize }}: {{ turn['content'] }}{{ '\n\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""The prompt that :class:`swarm_ui.nodes.models.transformers.causal_model.CausalModel` builds for a
tokenizer without a template, followed by the reply and the end token."""


class Encoded(NamedTuple):
    """The samples of a stage, ready for its trainer."""

    rows: list[Row]
    """Rows in trl's form: token ids and labels for supervised stages, texts for preferences."""
    tokens: int
    """Tokens of all rows; a prompt counts once for each of its replies."""
    longest: int
    """Tokens of the longest prompt with its reply."""
    skipped: int
    """Number of samples that were left out because they are too long."""


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The model's tokenizer, with a plain chat template if it has none.

    Raises:
        ConfigError: there is none, or it has no end token.
    """
    if not folder.is_dir():
        raise ConfigError(f"finetune: no model in '{folder}': there is no such folder")
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    except UNLOADABLE as error:
        raise ConfigError(f"finetune: no tokenizer in '{folder}': {error}") from error
    if tokenizer.eos_token is None:
        raise ConfigError(
            f"finetune: the tokenizer in '{folder}' has no end token (eos_token); "
            "set one, or no reply would ever end"
        )
    if tokenizer.chat_template is None:
        tokenizer.chat_template = _PLAIN
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer  # type: ignore[no-any-return]


def encode(
    samples: Sequence[Sample],
    pair: bool,
    tokenizer: PreTrainedTokenizerBase,
    config: FinetuneConfig,
    where: str,
) -> Encoded:
    """The samples as tokens, without those that are longer than ``max_length``.

    Raises:
        ConfigError: a sample is too long and ``too_long`` is ``"error"``, or the chat template
            renders a prompt differently if a reply follows it.
    """
    rows: list[Row] = []
    lengths: list[int] = []
    tokens = 0
    for sample in samples:
        row = conversational(sample, pair=pair)
        prompt = _ids(tokenizer, row["prompt"], where, add_generation_prompt=True)
        sides = [row[key] for key in ("completion", "chosen", "rejected") if key in row]
        whole = [_ids(tokenizer, row["prompt"] + side, where) for side in sides]
        if any(ids[: len(prompt)] != prompt for ids in whole):
            raise ConfigError(
                f"{where}: with the tokenizer's chat template, the text of a prompt "
                "(add_generation_prompt=True) is not the beginning of the text of the same prompt "
                "with its reply. The model would be trained on prompts that differ from those at "
                "inference; use another chat template"
            )
        lengths.append(max(map(len, whole)))
        if lengths[-1] > config.max_length:
            continue
        tokens += sum(map(len, whole))
        ids = whole[0]
        labels = [-100] * len(prompt) + ids[len(prompt) :]
        rows.append(row if pair else {"input_ids": ids, "labels": labels})
    skipped = len(samples) - len(rows)
    if skipped and config.too_long == "error":
        raise ConfigError(
            f"{where}: {skipped} of {len(samples)} samples have more than {config.max_length} "
            f"tokens, the longest {max(lengths)}; raise 'max_length', or set too_long='skip' to "
            "skip them"
        )
    fitting = [length for length in lengths if length <= config.max_length]
    return Encoded(rows, tokens, max(fitting, default=0), skipped)


def _ids(
    tokenizer: Any, turns: list[dict[str, str]], where: str, *, add_generation_prompt: bool = False
) -> list[int]:
    try:
        read = tokenizer.apply_chat_template(
            turns, tokenize=True, add_generation_prompt=add_generation_prompt, return_dict=True
        )
    except Exception as error:  # a template may raise any exception
        raise ConfigError(f"{where}: the tokenizer's chat template fails: {error}") from error
    ids: list[int] = read["input_ids"]
    return ids
