"""The embedded agent: a tiny transformer that reads screens as compact tokens.

No key, no GPU, no download. What it shares with every model in this process (batches, adapters
and their versions) is in :mod:`swarm_ui.nodes.models.transformers.in_process_model`.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from swarm_ui.action import Abstain, Action, Unparsed, parse_action
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Decision, Request
from swarm_ui.nodes.models.tiny_agent import architecture
from swarm_ui.nodes.models.tiny_agent.tokenizer import Encoded, ScreenTokenizer
from swarm_ui.nodes.models.transformers.decoding import Row
from swarm_ui.nodes.models.transformers.in_process_model import (
    MAX_WAITING,
    Counters,
    InProcessModel,
)
from swarm_ui.nodes.models.transformers.lora_adapters import LoraAdapters

__all__ = ["BASE_AGENT", "Counters", "LocalModel"]

_REPLY_TOKENS = 20
BASE_AGENT = Path(__file__).parent / "base_agent"
"""The checkpoint that ships with the library."""


class LocalModel(InProcessModel[Encoded]):
    """The embedded agent (or another model of its architecture) with named adapters."""

    def __init__(
        self,
        network: PreTrainedModel,
        codec: ScreenTokenizer,
        *,
        name: str = "base-agent",
        constrained: bool = True,
        linger: float = 0.0,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """
        Args:
            network: a transformers causal language model over the codec's tokens.
            constrained: hold replies to the actions that the screen offers.
            linger, max_waiting: see :class:`~swarm_ui.nodes.models.batcher.Batcher`.
        """
        super().__init__(
            LoraAdapters(network),
            name=name,
            pad_id=codec.pad_id,
            stops=(codec.eos_id,),
            linger=linger,
            max_waiting=max_waiting,
        )
        self.codec = codec
        self._constrained = constrained

    # -- making, loading, saving --------------------------------------------------------------

    @classmethod
    def untrained(
        cls, codec: ScreenTokenizer, *, width: int, layers: int, heads: int, seed: int
    ) -> LocalModel:
        """A new agent with random weights."""
        network = architecture.build(
            len(codec),
            width=width,
            layers=layers,
            heads=heads,
            seed=seed,
            pad_id=codec.pad_id,
            eos_id=codec.eos_id,
        )
        return cls(network, codec)

    @classmethod
    def load(cls, folder: Path = BASE_AGENT, *, constrained: bool = True) -> LocalModel:
        """An agent saved by :meth:`save`.

        Raises:
            ConfigError: the folder holds none, or one of another vocabulary.
        """
        words = folder / "words.json"
        if not words.is_file():
            raise ConfigError(
                f"no agent in {folder}: expected words.json, config.json and model.safetensors; "
                "make one with demos/train_base_agent.py --out FOLDER, or give another folder"
            )
        codec = ScreenTokenizer(json.loads(words.read_text(encoding="utf-8")))
        network = AutoModelForCausalLM.from_pretrained(folder)
        if network.config.vocab_size != len(codec):
            raise ConfigError(
                f"{folder}: the weights know {network.config.vocab_size} tokens, the word list "
                f"gives {len(codec)}; the two files do not belong together"
            )
        return cls(network, codec, constrained=constrained)

    def with_words(self, more: Sequence[str], *, seed: int = 0) -> LocalModel:
        """A copy that knows more words, to be trained further; adapters are left behind.

        The new words' embeddings are drawn with the spread of the known ones; all other weights
        are those of this agent. Until it is trained, it answers prompts without a new word as this
        agent does, if both are held to the screen's actions.
        """
        codec = ScreenTokenizer([*self.codec.extra_words, *more])
        base = self._adapters.base
        config = copy.deepcopy(base.config)
        config.vocab_size = len(codec)
        network = type(base)(config)
        weights = {name: tensor.clone() for name, tensor in self._adapters.base_weights().items()}
        generator = torch.Generator().manual_seed(seed)
        for name, tensor in weights.items():
            if tensor.shape[0] == len(self.codec):
                added = torch.randn(
                    len(codec) - len(self.codec), *tensor.shape[1:], generator=generator
                )
                weights[name] = torch.cat([tensor, added * tensor.std()])
        network.load_state_dict(weights, strict=False)
        network.tie_weights()
        network.train(False)
        return LocalModel(network, codec, constrained=self._constrained)

    def save(self, folder: Path) -> None:
        """Base weights, configuration and word list (adapters: :meth:`save_adapters`)."""
        folder.mkdir(parents=True, exist_ok=True)
        self._adapters.base.save_pretrained(str(folder), state_dict=self._adapters.base_weights())
        (folder / "words.json").write_text(json.dumps(self.codec.extra_words), encoding="utf-8")

    # -- tokens -------------------------------------------------------------------------------

    def _read(self, request: Request) -> Encoded:
        if request.decision is None:
            raise ModelError(
                "the embedded agent answers decisions about a screen, not free chat; use an "
                "OpenAI-compatible model, or CausalModel, for critics and adversaries that talk"
            )
        return self.codec.encode(request.decision)

    def _row(self, request: Request, prompt: Encoded) -> Row:
        bound = self._constrained
        return Row(
            prompt=prompt.ids,
            temperature=request.temperature,
            seed=request.seed,
            max_tokens=min(request.max_tokens, _REPLY_TOKENS),
            grammar=self.codec.grammar(prompt) if bound else None,
            free=tuple(self.codec.free_words(prompt)) if bound else (),
        )

    def _text(self, prompt: Encoded, ids: list[int]) -> str:
        action = self.codec.decode(prompt, ids)
        return action.text if isinstance(action, Unparsed) else action.json()

    def _shown(self, prompt: Encoded) -> str:
        named = {id_: word for word, id_ in prompt.slots.items()}
        return " ".join([named.get(i, self.codec.tokens[i]) for i in prompt.ids])

    def _reply(self, prompt: Encoded, reply: str) -> list[int] | None:
        action = parse_action(reply)
        return None if isinstance(action, Unparsed) else self.codec.reply(prompt, action)

    # -- training -----------------------------------------------------------------------------

    def encode(self, decision: Decision, reply: str) -> tuple[list[int], list[int]]:
        """Token ids of the prompt as the policy reads it, and of a JSON reply with its end token.

        Raises:
            ModelError: the reply is no valid action, so the policy could not have written it.
        """
        action = parse_action(reply)
        if isinstance(action, Unparsed):
            raise ModelError(f"cannot encode the reply {reply!r}: {action.reason}")
        prompt = self.codec.encode(decision)
        return prompt.ids, self.codec.reply(prompt, action)

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) and number of tokens of replies under the adapter in use.

        Args:
            ids: shape ``[batch, tokens]``: prompt, reply, padding on the right.
            attention_mask: same shape; padding on the right needs no mask in a causal model.
            reply_mask: same shape, 1 on the reply's tokens.
        """
        mask = reply_mask.to(torch.float)
        return _reply_logprobs(self._adapters.base, ids, mask), mask[:, 1:].sum(1)

    def lesson(
        self, decision: Decision, action: Action | Abstain, rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """As :meth:`encode`, with slots drawn anew: a sample of stage 1."""
        prompt = self.codec.encode(decision, rng)
        return _sample(prompt, self.codec.reply(prompt, action))

    def quiz(
        self, decision: Decision, questions: Sequence[tuple[str, int]], rng: random.Random
    ) -> tuple[list[int], list[int]]:
        """Questions about a screen and their answers: ids, and 1 on the answers'."""
        return self.codec.quiz(self.codec.encode(decision, rng), questions)


def _sample(prompt: Encoded, reply: list[int]) -> tuple[list[int], list[int]]:
    return prompt.ids + reply, [0] * len(prompt.ids) + [1] * len(reply)


def _reply_logprobs(network: nn.Module, ids: Tensor, replies: Tensor) -> Tensor:
    """Summed log-probability of the marked tokens, shape ``[batch]``; logits only where needed."""
    hidden = network.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state  # type: ignore[operator]
    marked = replies[:, 1:] > 0
    logits = network.get_output_embeddings()(hidden[marked]).float()  # type: ignore[operator]
    gained = logits.log_softmax(-1).gather(1, ids[:, 1:][marked][:, None])[:, 0]
    spread = torch.zeros(marked.shape, dtype=gained.dtype).masked_scatter(marked, gained)
    return spread.sum(1)
