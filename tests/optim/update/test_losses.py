"""Losses of (model, batch) against closed forms, and against trl on a tiny transformers model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import token_logprobs
from torch import Tensor, nn

from swarm_ui.optim import Batch, Example, dpo_loss, ipo_loss, policy_gradient_loss, rft_loss


class Given:
    """A model whose reply has the log-probability of the weight that its only token names."""

    pad_id = 0

    def __init__(self, *values: float) -> None:
        self.module = nn.Module()
        self.module.weights = nn.Parameter(torch.tensor([0.0, *values]))
        self.active: list[str] = []

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        return [self.module.weights]  # type: ignore[list-item]

    @contextmanager
    def activate(self, name: str) -> Iterator[None]:
        self.active.append(name)
        self.module.weights.requires_grad_(name == "one")  # type: ignore[operator]
        yield

    def forward_logprobs(self, ids: Tensor, mask: Tensor, replies: Tensor) -> tuple[Tensor, Tensor]:
        named = (ids * replies).max(1).values
        share = replies / replies.sum(1, keepdim=True)
        return self.module.weights[named][:, None] * share, replies.sum(1)  # type: ignore[index]

    @property
    def gradient(self) -> list[float]:
        return self.module.weights.grad[1:].tolist()  # type: ignore[union-attr, index]


def reply(number: int, tokens: int = 1) -> tuple[list[int], list[int]]:
    return [0], [number] * tokens


def pair(chosen: int, rejected: int, *, weight: float = 1.0, ref: Any = (0.0, 0.0)) -> Example:
    return Example("one", reply(chosen), reply(rejected), weight, ref)


SIDES = (-4.0, -5.0, -2.0, -1.0)
PAIRS = (pair(1, 2, ref=(-4.5, -4.0)), pair(3, 4, ref=(-2.0, -2.0)))
MARGINS = (1.5, -1.0)  # by hand


def test_dpo_is_minus_log_sigmoid_of_the_margin() -> None:
    by_hand = [math.log1p(math.exp(-0.3 * h)) for h in MARGINS]
    assert dpo_loss(Given(*SIDES), Batch(PAIRS), beta=0.3).item() == pytest.approx(sum(by_hand) / 2)
    weighted = Batch([PAIRS[0]._replace(weight=3.0), PAIRS[1]])
    found = dpo_loss(Given(*SIDES), weighted, beta=0.3).item()
    assert found == pytest.approx((3 * by_hand[0] + by_hand[1]) / 4)


def test_dpo_at_the_reference_is_log_two_with_gradient_half_beta() -> None:
    model = Given(*SIDES)
    loss = dpo_loss(model, Batch([pair(1, 2, ref=SIDES[:2]), pair(3, 4, ref=SIDES[2:])]), beta=0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(math.log(2))
    assert model.gradient == pytest.approx([-0.05, 0.05, -0.05, 0.05])


def test_ipo_is_the_squared_distance_to_its_target() -> None:
    by_hand = [(h - 1 / (2 * 0.25)) ** 2 for h in MARGINS]
    found = ipo_loss(Given(*SIDES), Batch(PAIRS), beta=0.25).item()
    assert found == pytest.approx(sum(by_hand) / 2)


def test_rft_is_per_token_and_zero_weight_drops_a_reply() -> None:
    model = Given(-4.0, -2.0)
    both = [Example("one", reply(1, 2)), Example("one", reply(2, 6))]
    assert rft_loss(model, Batch(both)).item() == pytest.approx(6.0 / 8.0)
    one = [both[0], both[1]._replace(weight=0.0)]
    assert rft_loss(model, Batch(one)).item() == pytest.approx(4.0 / 2.0)


def test_an_example_without_a_rejected_reply_counts_in_the_supervised_term_only() -> None:
    bare = Example("one", reply(4))
    mixed = Batch([PAIRS[0], bare])
    found = dpo_loss(Given(*SIDES), mixed, beta=0.3, nll_weight=2.0).item()
    preference = math.log1p(math.exp(-0.3 * 1.5)) / 2  # half of the examples are pairs
    assert found == pytest.approx(preference + 2.0 * (4.0 + 1.0) / 2)


class Tokens(Given):
    """A model in which a token has the log-probability of the weight that it names."""

    def forward_logprobs(self, ids: Tensor, mask: Tensor, replies: Tensor) -> tuple[Tensor, Tensor]:
        return self.module.weights[ids] * replies, replies.sum(1)  # type: ignore[index]


def scored(numbers: list[int], advantage: float, before: list[float]) -> Example:
    """A reply of these tokens with their log-probabilities before."""
    return Example("one", ([0, 0], numbers), None, advantage, by_token=tuple(before))


TWO = [scored([1, 2], 1.0, [-2.0, -2.0]), scored([3], -2.0, [-1.0])]
"""With the log-probabilities -1.9, -3 and -0.5 the ratios are e^0.1, e^-1 and e^0.5."""


def test_grpo_clips_the_ratio_of_each_token() -> None:
    first = (math.exp(0.1) + math.exp(-1.0)) / 2  # 1.105 is within the clip
    loss = policy_gradient_loss(Tokens(-1.9, -3.0, -0.5), Batch(TWO), clip=0.2)
    assert loss.item() == pytest.approx(-(first - 2 * math.exp(0.5)) / 2)
    narrow = policy_gradient_loss(Tokens(-1.9, -3.0, -0.5), Batch(TWO), clip=0.05)
    first = (1.05 + math.exp(-1.0)) / 2
    assert narrow.item() == pytest.approx(-(first - 2 * math.exp(0.5)) / 2)


def test_gspo_clips_one_ratio_of_the_reply_by_its_length() -> None:
    model = Tokens(-1.9, -3.0, -0.5)
    loss = policy_gradient_loss(model, Batch(TWO), ratio="sequence", clip=0.2)
    first = math.exp((0.1 - 1.0) / 2)  # 0.638: a positive advantage has no lower bound
    assert loss.item() == pytest.approx(-(first - 2 * math.exp(0.5)) / 2)
    far = [scored([1, 2], 1.0, [-4.45, -4.45]), TWO[1]]  # the ratio is e^2: clipped
    found = policy_gradient_loss(model, Batch(far), ratio="sequence", clip=0.2)
    assert found.item() == pytest.approx(-(1.2 - 2 * math.exp(0.5)) / 2)


@pytest.mark.parametrize("ratio", ["token", "sequence"])
def test_its_gradient_is_that_of_the_likelihood_at_first_and_ends_at_the_clip(ratio: Any) -> None:
    model = Tokens(-2.0, -2.0, -1.0)
    policy_gradient_loss(model, Batch(TWO), ratio=ratio).backward()  # type: ignore[no-untyped-call]
    assert model.gradient == pytest.approx([-1 / 4, -1 / 4, 2 / 2])
    far = Tokens(0.0, 0.0, -4.0)  # all beyond the clip
    policy_gradient_loss(far, Batch(TWO), ratio=ratio).backward()  # type: ignore[no-untyped-call]
    assert far.gradient == [0.0, 0.0, 0.0]


def test_the_divergence_is_that_of_each_token_from_the_reference() -> None:
    model = Tokens(-1.0, -2.0)
    here = Batch([scored([1, 2], 0.0, [-1.0, -2.0])])
    assert policy_gradient_loss(model, here, beta=1.0).item() == 0.0
    away = Batch([scored([1, 2], 0.0, [0.0, -2.5])])
    found = policy_gradient_loss(model, away, beta=0.5).item()
    assert found == pytest.approx(0.5 * ((math.e - 2) + (math.exp(-0.5) - 0.5)) / 2)


def test_a_batch_may_mix_agents_and_all_of_them_get_a_gradient() -> None:
    model = Given(*SIDES)
    mixed = Batch([PAIRS[0], PAIRS[1]._replace(adapter="two")])
    alone = dpo_loss(Given(*SIDES), Batch(PAIRS), beta=0.3)
    loss = dpo_loss(model, mixed, beta=0.3)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(alone.item()) and model.active == ["one", "two"]
    assert all(model.gradient[:2])


# -- against trl ------------------------------------------------------------------------------


class Transformer:
    """A transformers model as a trainable one."""

    pad_id = 0

    def __init__(self, module: Any) -> None:
        self.module = module

    @contextmanager
    def activate(self, name: str) -> Iterator[None]:
        yield

    def forward_logprobs(self, ids: Tensor, mask: Tensor, replies: Tensor) -> tuple[Tensor, Tensor]:
        return token_logprobs(self.module(ids, attention_mask=mask).logits, ids, replies)


def tiny(seed: int, vocabulary: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, initializer_range=0.5,
        pad_token_id=0, bos_token_id=None, eos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def words() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    for word in ("tap", "save", "back", "help", "the", "now", "please", "a", "b"):
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "loss"), [("sigmoid", dpo_loss), ("ipo", ipo_loss)])
def test_a_loss_of_pairs_equals_that_of_trl(tmp_path: Path, kind: str, loss: Any) -> None:
    pytest.importorskip("trl")
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    one_token = kind == "ipo"  # where trl divides by the number of tokens, and ours does not
    rows = {
        "prompt": ["save the a please", "help now"],
        "chosen": ["", ""] if one_token else [" tap save", " tap help now"],
        "rejected": ["", ""] if one_token else [" back", " tap save b"],
    }
    tokenizer = words()
    policy, reference = tiny(0, len(tokenizer)), tiny(1, len(tokenizer))
    arguments = DPOConfig(
        output_dir=str(tmp_path), beta=0.3, loss_type=[kind], per_device_train_batch_size=2,
        max_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, max_length=None,
        gradient_checkpointing=False, bf16=False, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = DPOTrainer(
        policy,
        reference,
        args=arguments,
        train_dataset=Dataset.from_dict(rows),
        processing_class=tokenizer,
    )
    batch = next(iter(trainer.get_train_dataloader()))
    policy.eval()
    with torch.no_grad():
        theirs = float(trainer.compute_loss(policy, batch))

    def side(k: int, name: str) -> tuple[list[int], list[int]]:
        reply = tokenizer(rows[name][k])["input_ids"]
        return tokenizer(rows["prompt"][k])["input_ids"], [*reply, tokenizer.eos_token_id]

    from swarm_ui.optim import reply_logprobs

    with torch.no_grad():
        examples = []
        for k in range(2):
            sides = side(k, "chosen"), side(k, "rejected")
            under = reply_logprobs(Transformer(reference), [("", row) for row in sides])  # type: ignore[arg-type]
            examples.append(Example("", *sides, 1.0, tuple(under.tolist())))
        ours = float(loss(Transformer(policy), Batch(examples), beta=0.3))
    assert kind == "ipo" or abs(ours - 0.6931) > 0.05  # the models differ, so it says something
    assert ours == pytest.approx(theirs, rel=1e-5)
