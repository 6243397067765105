"""An in-process model that gives probabilities of a few short replies, and can be trained to do so.

Critics use it (:class:`swarm_ui.model.ChoosingModel`). All questions about one screen are packed
into one row of a batch (:mod:`swarm_ui.nodes.models.transformers.choices`).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.model import ChatMessage, Request, at_leased_versions
from swarm_ui.nodes.models.batcher import Batcher
from swarm_ui.nodes.models.transformers.adapters.frozen import FrozenAdapter
from swarm_ui.nodes.models.transformers.choices import (
    PackedPrompts,
    can_pack,
    grouped,
    option_ids,
    option_logits,
    pack,
)
from swarm_ui.nodes.models.transformers.in_process_model import InProcessModel, P, run_of

_BATCH_ROWS = 32
_BATCH_TOKENS = 8_192
"""Tokens in one forward, padding included. Attention needs the square of a row's length."""


class _Question(NamedTuple):
    """One packed row, the adapter that answers it, and the tokens to choose from."""

    row: PackedPrompts
    adapter: FrozenAdapter | None
    options: tuple[int, ...]


class ChoosingInProcessModel(InProcessModel[P]):
    """An in-process model that is also a :class:`swarm_ui.model.ChoosingModel`."""

    def __init__(self, network: PreTrainedModel, **options: Any) -> None:
        """See :class:`~swarm_ui.nodes.models.transformers.in_process_model.InProcessModel` for all
        arguments."""
        super().__init__(network, **options)
        self._packing: bool | None = None  # not tried yet
        self._choices: Batcher[_Question, list[tuple[float, ...]]] = Batcher(
            self._choose, max_batch=4 * _BATCH_ROWS
        )

    @abstractmethod
    def _first_token(self, option: str) -> int:
        """The first token of a reply."""

    async def probabilities(
        self, requests: Sequence[Request], options: Sequence[str]
    ) -> list[tuple[float, ...]]:
        """Probability of each option as the reply, among the options only; see
        :class:`swarm_ui.model.ChoosingModel`."""
        wanted = tuple(option_ids(options, [self._first_token(option) for option in options]))
        with at_leased_versions(self, requests) as exact:
            jobs = self._jobs(exact)
            groups: list[list[int]] = []
            for version in dict.fromkeys(job.version for job in jobs):
                own = [k for k, job in enumerate(jobs) if job.version == version]
                parts = grouped([jobs[k].prompt.ids for k in own], self._can_pack())
                groups += [[own[k] for k in part] for part in parts]
            questions = [
                _Question(
                    pack([jobs[k].prompt.ids for k in group]),
                    self._frozen_of(jobs[group[0]].version),
                    wanted,
                )
                for group in groups
            ]
            answers = await self._choices.ask(questions, run_of(requests))
        found = {k: p for group, a in zip(groups, answers, strict=True) for k, p in zip(group, a)}  # noqa: B905
        self.counters.scored += len(requests)
        return [found[k] for k in range(len(requests))]

    def _choose(self, questions: Sequence[_Question]) -> list[list[tuple[float, ...]]]:
        begun = time.perf_counter()
        found: dict[int, list[tuple[float, ...]]] = {}
        for options in dict.fromkeys(question.options for question in questions):
            own = [k for k, question in enumerate(questions) if question.options == options]
            for part in self._chunks(
                [len(questions[k].row.ids) for k in own],
                [questions[k].adapter for k in own],
                most_rows=_BATCH_ROWS,
                most_tokens=_BATCH_TOKENS,
            ):
                chunk = [own[k] for k in part]
                with (
                    self._routing([questions[k].adapter for k in chunk]),
                    torch.inference_mode(),
                ):
                    rows = [questions[k].row for k in chunk]
                    logits = option_logits(self.network, rows, options, self.pad_id)
                for k, values in zip(chunk, logits, strict=True):
                    found[k] = [tuple(row) for row in values.double().softmax(1).tolist()]
        self.counters.seconds += time.perf_counter() - begun
        return [found[k] for k in range(len(questions))]

    # -- training -----------------------------------------------------------------------------

    def packed(self, chats: Sequence[Sequence[ChatMessage]]) -> list[PackedPrompts]:
        """Chats as rows of tokens, in order. Adjacent chats with a common prefix share a row,
        unless the network cannot read packed prompts.

        Raises:
            ModelError: a chat is too long.
        """
        prompts = [self._read(Request(chat=tuple(chat))).ids for chat in chats]
        parts = grouped(prompts, self._can_pack())
        return [pack([prompts[k] for k in part]) for part in parts]

    def option_logits(self, rows: Sequence[PackedPrompts], options: Sequence[str]) -> list[Tensor]:
        """Logits of the answer options after each prompt, under the active adapter: one tensor
        ``[prompts in the row, options]`` for each row. They have gradients inside
        :meth:`activate`."""
        wanted = option_ids(options, [self._first_token(option) for option in options])
        return option_logits(self.network, rows, wanted, self.pad_id)

    def _can_pack(self) -> bool:
        if self._packing is None:
            with self.routed([None]) as network:
                self._packing = can_pack(network)
        return self._packing
