"""Training one adapter: it learns, alone, reproducibly, and from the right rows."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_fakes import TinyModel, click, screen

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.model import Decision
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, Method, UpdateConfig
from swarm_ui.optim.update.batches import pad, schedule

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]


def pairs(count: int = 24, *, rejected: bool = True) -> list[PreferencePair]:
    """For each goal another button is right."""
    return [
        PreferencePair(
            node="agent_0",
            decision=Decision(observation=screen(["x"], goal=f"goal-{k % 6} " * 4 + f"number-{k}")),
            chosen=click(k % 6, WORDS[k % 6]),
            rejected=click((k + 1) % 6, WORDS[(k + 1) % 6]) if rejected else None,
        )
        for k in range(count)
    ]


def preference(model: TinyModel, adapter: str, lesson: list[PreferencePair]) -> float:
    """Share of pairs whose chosen action is the more probable."""
    model.module.active = adapter
    with torch.no_grad():
        sides = [
            model.forward_logprobs(*pad([model.encode(p.decision, a.json()) for p, a in part], 0))[
                0
            ]
            for part in (
                [(p, p.chosen) for p in lesson],
                [(p, p.rejected or p.chosen) for p in lesson],
            )
        ]
    model.module.active = None
    return float((sides[0] > sides[1]).float().mean())


SETTINGS = UpdateConfig(method="dpo", steps=60, batch_size=8, lr=5e-2)


@pytest.mark.parametrize("method", ["dpo", "ipo", "rft"])
@pytest.mark.parametrize("reference", ["start", "base"])
def test_training_learns_to_prefer_what_was_chosen(method: str, reference: str) -> None:
    model: Trainable = TinyModel(["one", "two"])
    assert isinstance(model, TinyModel)
    lesson = pairs()
    other = [p.clone() for p in model.adapter_parameters("two")]
    base = model.module.out.clone()
    before = preference(model, "one", lesson)
    beta = 0.05 if method == "ipo" else 0.2  # IPO aims at a margin of 1 / (2 beta) and no more
    config = replace(SETTINGS, method=method, reference=reference, beta=beta)
    stats = AdapterTrainer(model, config).fit("one", lesson, random.Random(0))
    after = preference(model, "one", lesson)
    assert after >= 0.9 > before + 0.1
    assert stats.steps == 60
    assert stats.pairs == 24
    assert stats.loss is not None and stats.first_loss is not None
    assert stats.loss < stats.first_loss
    assert (stats.accuracy is None) == (method == "rft")
    if method != "rft":
        assert stats.accuracy is not None and stats.accuracy > 0.9
    assert model.versions == {"one": 1, "two": 0}
    assert torch.equal(base, model.module.out)
    assert all(
        torch.equal(a, b) for a, b in zip(other, model.adapter_parameters("two"), strict=True)
    )
    assert not model.module.training


def test_equal_seeds_give_equal_weights_and_other_seeds_do_not() -> None:
    def trained(seed: int) -> torch.Tensor:
        model = TinyModel(["one"])
        AdapterTrainer(model, SETTINGS).fit("one", pairs(), random.Random(seed))
        return model.adapter_parameters("one")[1].detach()

    assert torch.equal(trained(1), trained(1))
    assert not torch.equal(trained(1), trained(2))


def test_pairs_without_a_rejected_side_are_learned_as_replies() -> None:
    """By every method of pairs: without a preference, only the supervised term is left."""

    def trained(method: Method, bare: bool) -> torch.Tensor:
        model = TinyModel(["one"])
        config = UpdateConfig(steps=5, batch_size=8, method=method)
        examples = pairs(rejected=not bare)
        assert AdapterTrainer(model, config).fit("one", examples, random.Random(0)).pairs == 24
        return model.adapter_parameters("one")[1].detach()

    assert torch.equal(trained("dpo", bare=True), trained("rft", bare=True))
    assert torch.equal(trained("ipo", bare=True), trained("rft", bare=True))
    assert not torch.equal(trained("dpo", bare=False), trained("rft", bare=False))


def test_nothing_to_learn_from_changes_nothing() -> None:
    model = TinyModel(["one"])
    stats = AdapterTrainer(model, SETTINGS).fit("one", [], random.Random(0))
    assert (stats.pairs, stats.steps, stats.loss) == (0, 0, None)
    assert model.versions["one"] == 0  # nothing changed, so the version did not


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_it_and_changes_nothing(value: float) -> None:
    class Breaks(TinyModel):
        calls = 0

        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            sums, tokens = super().forward_logprobs(*batch)
            self.calls += 1
            return (sums * value if self.calls > 20 else sums), tokens

    model = Breaks(["one"])
    before = [p.clone() for p in model.adapter_parameters("one")]
    with pytest.raises(LearningError, match=r"adapter 'one', step \d+ of 60.*Lower lr"):
        AdapterTrainer(model, SETTINGS).fit("one", pairs(), random.Random(0))
    assert model.calls > 20
    assert all(
        torch.equal(a, b) for a, b in zip(before, model.adapter_parameters("one"), strict=True)
    )
    assert model.versions["one"] == 0
    assert not model.module.training


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), KeyboardInterrupt()])
def test_an_update_that_is_cut_off_changes_nothing(error: BaseException) -> None:
    """So it can be made again, as with smaller micro-batches."""

    class Breaks(TinyModel):
        calls = 0

        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            self.calls += 1
            if self.calls == 20:
                raise error
            return super().forward_logprobs(*batch)

    model = Breaks(["one"])
    before = [p.clone() for p in model.adapter_parameters("one")]
    with pytest.raises(type(error)):
        AdapterTrainer(model, SETTINGS).fit("one", pairs(), random.Random(0))
    assert all(
        torch.equal(a, b) for a, b in zip(before, model.adapter_parameters("one"), strict=True)
    )
    assert model.versions["one"] == 0 and not model.module.training


def test_a_gradient_that_is_no_number_ends_it_before_it_moves_a_weight() -> None:
    model = TinyModel(["one"])
    before = [p.clone() for p in model.adapter_parameters("one")]
    seen = 0

    def spoil(gradient: torch.Tensor) -> torch.Tensor:
        nonlocal seen
        seen += 1
        return gradient * float("nan") if seen == SETTINGS.steps else gradient

    handle = model.adapter_parameters("one")[1].register_hook(spoil)
    with pytest.raises(LearningError, match=r"step 60 of 60.*the gradient's norm is nan"):
        AdapterTrainer(model, SETTINGS).fit("one", pairs(), random.Random(0))
    handle.remove()
    assert all(
        torch.equal(a, b) for a, b in zip(before, model.adapter_parameters("one"), strict=True)
    )
    assert model.versions["one"] == 0


def test_the_reference_is_asked_only_about_what_a_batch_will_use() -> None:
    class Counts(TinyModel):
        asked = 0

        def forward_logprobs(self, *batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            self.asked += 0 if self.module.training else len(batch[0])
            return super().forward_logprobs(*batch)

    model = Counts(["one"])
    config = replace(SETTINGS, steps=2, batch_size=4)
    stats = AdapterTrainer(model, config).fit("one", pairs(60), random.Random(0))
    assert stats.pairs > 50
    assert model.asked == 2 * 2 * 4  # both sides of two batches of four


def test_the_same_lesson_counts_once() -> None:
    twice = pairs() + pairs()
    trainer = AdapterTrainer(TinyModel(["one"]), SETTINGS)
    assert trainer.fit("one", twice, random.Random(0)).pairs == 24


def test_the_rate_warms_up_and_falls() -> None:
    config = UpdateConfig(steps=100, lr=1.0, warmup=10, floor=0.05)
    rates = [config.rate(k) for k in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == pytest.approx(0.91)
    assert rates[-1] == pytest.approx(0.05)
    with pytest.raises(ConfigError, match="method"):
        UpdateConfig(method="ppo")  # type: ignore[arg-type]


def test_reply_log_probabilities_do_not_depend_on_padding_or_neighbours() -> None:
    model = TinyModel()
    rows = [
        model.encode(
            Decision(observation=screen(WORDS[: k + 1], goal="a " * k + "b")), click(0).json()
        )
        for k in range(5)
    ]
    together, counts = model.forward_logprobs(*pad(rows, 0))
    for k, row in enumerate(rows):
        alone, count = model.forward_logprobs(*pad([row], 0))
        assert together[k].item() == pytest.approx(alone.item(), abs=1e-4)
        assert counts[k] == count == len(row[1])
    prompt, reply = rows[2]
    scores = model.module(torch.tensor([prompt + reply])).log_softmax(-1)[0]
    by_hand = sum(float(scores[len(prompt) - 1 + k, id]) for k, id in enumerate(reply))
    assert together[2].item() == pytest.approx(by_hand, abs=1e-4)


@given(
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=60),
    steps=st.integers(1, 20),
    size=st.integers(1, 16),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_batches_use_every_row_about_equally_often(
    lengths: list[int], steps: int, size: int, seed: int
) -> None:
    batches = schedule(lengths, steps=steps, batch_size=size, rng=random.Random(seed))
    assert [len(batch) for batch in batches] == [size] * steps
    used = [row for batch in batches for row in batch]
    counts = [used.count(row) for row in range(len(lengths))]
    assert max(counts) - min(counts) <= 1


def test_batches_hold_rows_of_like_length() -> None:
    rng = random.Random(0)
    lengths = [rng.randrange(10, 200) for _ in range(320)]
    spread = [
        max(lengths[k] for k in batch) - min(lengths[k] for k in batch)
        for batch in schedule(lengths, steps=10, batch_size=32, rng=rng)
    ]
    assert max(spread) < 60
