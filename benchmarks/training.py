"""Cost of training a team: four adapters against one, our loop against trl's, and an iteration.

python benchmarks/training.py [--quick] [--only {iteration,adapters,trl}]

The shipped base agent, four agents and three rounds on the embedded phone (a simulation), on one
thread of one core. Prints tables; the last line is JSON:

- ``four_vs_one``: updating four adapters, each on its own agent's pairs, against one adapter on all
  of them with as many optimiser steps in total (ratio of CPU times; the target is at most 1.3);
- ``four_vs_one_bootstrap``: the same where each of the four also learns from half of the others'
  pairs, the default of the trainer;
- ``trl_vs_ours``: DPOTrainer of trl with peft on the same model, start, pairs, batches and steps,
  against our loop (ratio of CPU times; more is better for ours); ``loss_gap``: the largest
  difference between their losses of the same step, relative to the loss;
- ``model_busy``: the share of the wall time of an iteration that is spent in the model, in rollouts
  and updates (the target is at least 0.7); ``iteration_s``, ``iteration_cpu_s``,
  ``rollout_tokens_per_s``, ``update_tokens_per_s`` and ``peak_memory_mb`` are of the same
  iterations: one that trains a shared adapter and one that trains an adapter for each agent.

Times are medians of interleaved runs; those of iterations are means.

Updating all adapters in one step, with rows routed through stacked matrices, was compared with
updating them one after the other, and was not adopted. With an equal result (weights within 1e-5
after five steps) it took 1.21 times the CPU time with 32 pairs a batch, 1.04 with 8, and 0.73 with
2. On this model arithmetic dominates the time, and it is the same in both cases.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs
from swarm_ui.environments.phone.templates import CORE
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.examples import Batch, Row, minibatches, with_reference
from swarm_ui.optim.guidance import Guidance
from swarm_ui.optim.losses import dpo_loss
from swarm_ui.optim.metrics import Metrics
from swarm_ui.optim.preferences import PreferencePair, preference_pairs
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update import update_team
from swarm_ui.rollout import GraphPolicy, Job, rollout_many

AGENTS, ROUNDS = 4, 3
NAMES = [f"agent_{k}" for k in range(AGENTS)]
RANK, ALPHA = 16, 32
"""Of every adapter."""
Figures = dict[str, float]


class Counted(LocalModel):
    """Counts the tokens that training processes."""

    trained_tokens = 0

    def forward_logprobs(
        self,
        ids: Tensor,
        attention_mask: Tensor,
        reply_mask: Tensor,
        adapters: Sequence[str | None] | None = None,
    ) -> tuple[Tensor, Tensor]:
        self.trained_tokens += int(attention_mask.sum())
        return super().forward_logprobs(ids, attention_mask, reply_mask, adapters)


def team(model: LocalModel) -> CollabGraph:
    return CollabGraph.collaborative(
        AGENTS, ROUNDS, model=model, seed=0, adapters=NAMES, temperature=0.8, views="shuffle"
    )


def jobs(count: int, /, *, seed: int) -> list[Job]:
    drawn = random.Random(seed).randrange(10**6)
    return draw_jobs(tuple(CORE), count, seed=drawn, seeds=TRAIN_SEEDS)


def sample_pairs(episodes: int) -> list[PreferencePair]:
    """The pairs of one iteration, from rollouts of the untrained team."""
    model = LocalModel.load()
    for name in NAMES:
        model.add_adapter(name)
    referee = Guidance(ScriptedCritic(PhoneEnvironment), ScriptedAdversary(), guide=0.7)
    played = asyncio.run(
        rollout_many(
            PhoneEnvironment, GraphPolicy(team(model)), jobs(episodes, seed=0),
            concurrency=64, intervention=referee,
        )
    )  # fmt: skip
    critic = ScriptedCritic(PhoneEnvironment)
    credit = asyncio.run(critic(played))
    pairs = preference_pairs(played, credit)
    return [pair for pair in pairs if pair.rejected is not None]


def interleaved(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each variant, after one warm-up run of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, run in ways.items():
            began = time.process_time()
            run()
            if turn:
                times[name].append(time.process_time() - began)
    return {name: statistics.median(each) for name, each in times.items()}


# -- four adapters against one ----------------------------------------------------------------


def measure_adapters(
    pairs: Sequence[PreferencePair], steps: int, repeats: int
) -> tuple[Figures, Table]:
    """CPU seconds of an update of four adapters, and of one adapter with four times the steps."""
    base = TeamConfig(
        iterations=2, shared_iterations=0, update=UpdateConfig(method="dpo", steps=steps)
    )
    one = replace(base, update=replace(base.update, steps=AGENTS * steps))

    def updating(config: TeamConfig, adapters: dict[str, str]) -> Callable[[], object]:
        model = LocalModel.load()
        for name in dict.fromkeys(adapters.values()):
            model.add_adapter(name, rank=config.rank, alpha=2 * config.rank)
        return lambda: update_team(model, pairs, adapters, config, 0)

    def each_its_own(config: TeamConfig) -> Callable[[], object]:
        model = LocalModel.load()
        for name in NAMES:
            model.add_adapter(name, rank=config.rank, alpha=2 * config.rank)
        own = {name: [pair for pair in pairs if pair.node == name] for name in NAMES}
        return lambda: [update_team(model, own[n], {n: n}, config, 0) for n in NAMES]

    own = {name: name for name in NAMES}
    cpu = interleaved(
        {
            "one adapter, all pairs": updating(one, dict.fromkeys(NAMES, "team")),
            "four adapters, own pairs": each_its_own(base),
            "four adapters, and half of the others'": updating(base, own),
        },
        repeats,
    )
    first, *others = cpu.values()
    table = Table("update", "CPU s", "against one", title=_told(len(pairs), AGENTS * steps, base))
    for name, seconds in cpu.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / first:.2f}")
    own_ratio, bootstrap = (round(seconds / first, 3) for seconds in others)
    return {"four_vs_one": own_ratio, "four_vs_one_bootstrap": bootstrap}, table


def _told(pairs: int, steps: int, config: TeamConfig) -> str:
    return f"{pairs} pairs, {steps} steps in all, {config.update.batch_size} pairs a batch"


# -- our loop against trl's -------------------------------------------------------------------


BETA, LR, BETAS, CLIP = 0.05, 1e-3, (0.9, 0.98), 1.0
"""Plain DPO at a constant rate: what both can do."""


class Start:
    """The start of both loops: a model, its initial adapter, and the batches of all steps."""

    def __init__(self, pairs: Sequence[PreferencePair], steps: int, batch_size: int) -> None:
        self.steps, self.batch_size = steps, batch_size
        self.model = self.fresh()
        self.pairs = [
            msgspec.structs.replace(pair, node="default")
            for pair in _distinct(self.model, pairs)[: steps * batch_size]
        ]
        self.weights = [p.detach().clone() for p in self.model.adapter_parameters("default")]
        flat = [example for batch in self.batches() for example in batch]
        self.chosen = [example.chosen for example in flat]
        self.rejected = [example.rejected for example in flat if example.rejected is not None]
        assert len(self.rejected) == len(flat)  # every pair has both

    def batches(self) -> list[Batch]:
        return minibatches(with_reference(self.model, self.pairs), self.batch_size, self.steps)

    def fresh(self) -> LocalModel:
        model = LocalModel.load()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model.add_adapter("default", rank=RANK, alpha=ALPHA)
        return model


def _distinct(model: LocalModel, pairs: Sequence[PreferencePair]) -> list[PreferencePair]:
    """The pairs that training treats as different examples, all with the same weight."""
    found: dict[tuple[tuple[int, ...], ...], PreferencePair] = {}
    for pair in pairs:
        prompt, reply = model.encode(pair.decision, pair.chosen.json())
        if pair.weight == 1.0:
            found.setdefault((tuple(prompt), tuple(reply)), pair)
    return list(found.values())


class Ours:
    """Our loop. Each run begins from the same start."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.losses: list[float] = []

    def __call__(self) -> None:
        model, parameters = self._start.model, self._start.model.adapter_parameters("default")
        with torch.no_grad():
            for parameter, value in zip(parameters, self._start.weights, strict=True):
                parameter.copy_(value)
        self.losses = []
        with model.activate("default"):
            optimizer = torch.optim.AdamW(parameters, lr=LR, betas=BETAS, weight_decay=0.0)
            for batch in self._start.batches():
                optimizer.zero_grad()
                loss = dpo_loss(model, batch, beta=BETA)
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(parameters, CLIP)
                optimizer.step()
                self.losses.append(float(loss.detach()))


class Theirs:
    """DPOTrainer of trl on the same rows in the same order; created before each run, untimed."""

    def __init__(self, start: Start, folder: Path) -> None:
        self._start, self._folder = start, folder
        self.losses: list[float] = []
        self.cpu: list[float] = []

    def __call__(self) -> None:
        trainer = self._made()
        began = time.process_time()
        trainer.train()
        self.cpu.append(time.process_time() - began)
        self.losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]

    def _made(self) -> Any:
        from datasets import Dataset
        from peft import LoraConfig
        from torch.utils.data import SequentialSampler
        from trl.trainer.dpo_config import DPOConfig
        from trl.trainer.dpo_trainer import DPOTrainer

        class Prepared(DPOTrainer):
            """Takes rows of token ids, in their order."""

            def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
                return dataset

            def _get_train_sampler(self, *_: Any) -> Any:
                rows: Any = self.train_dataset
                return SequentialSampler(rows)

        start = self._start
        adapters: Any = start.model.module.peft_config
        arguments = DPOConfig(
            output_dir=str(self._folder), beta=BETA, loss_type=["sigmoid"],
            per_device_train_batch_size=start.batch_size, max_steps=start.steps,
            learning_rate=LR, lr_scheduler_type="constant", adam_beta1=BETAS[0],
            adam_beta2=BETAS[1], weight_decay=0.0, max_grad_norm=CLIP,
            logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
            max_length=None, gradient_checkpointing=False, bf16=False,
            dataloader_pin_memory=False, remove_unused_columns=False,
        )  # fmt: skip
        made = Prepared(
            LocalModel.load().network,
            args=arguments,
            train_dataset=Dataset.from_list(_rows(start.chosen, start.rejected)),
            processing_class=_tokenizer(),
            peft_config=LoraConfig(
                r=RANK, lora_alpha=ALPHA,
                target_modules=list(adapters["default"].target_modules),
            ),
        )  # fmt: skip
        made.remove_callback(transformers.PrinterCallback)
        # Their adapter starts as ours does.
        network: Any = made.model
        ours = dict(start.model.module.named_parameters())
        with torch.no_grad():
            for (name, value), weight in zip(
                [(n, p) for n, p in ours.items() if ".default." in n], start.weights, strict=True
            ):
                assert value.shape == weight.shape
                network.get_parameter(name).copy_(weight)
        return made


def _rows(chosen: Sequence[Row], rejected: Sequence[Row]) -> list[dict[str, list[int]]]:
    return [
        {"prompt_ids": good[0], "chosen_ids": good[1], "rejected_ids": bad[1]}
        for good, bad in zip(chosen, rejected, strict=True)
    ]


def _tokenizer() -> Any:
    """A tokenizer for trl, which only reads the number of the padding token."""
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>"))
    return transformers.PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>"
    )


def measure_trl(pairs: Sequence[PreferencePair], steps: int, repeats: int) -> tuple[Figures, Table]:
    """CPU seconds of the same training by trl's loop and by ours, and how their losses differ."""
    start = Start(pairs, steps, batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Ours(start), Theirs(start, Path(folder))
        cpu = interleaved({"ours": ours, "trl": theirs}, repeats)
    cpu["trl"] = statistics.median(theirs.cpu[1:])  # without making the trainer
    gap = max(abs(a - b) / abs(a) for a, b in zip(ours.losses, theirs.losses, strict=True))
    table = Table(
        "DPO", "CPU s", "ms a step", "first loss", "last loss",
        title=f"{len(start.pairs)} pairs, {steps} steps of 16, LoRA rank {RANK}",
    )  # fmt: skip
    for name, losses in (("ours", ours.losses), ("trl", theirs.losses)):
        table.add_row(name, f"{cpu[name]:.2f}", f"{1000 * cpu[name] / steps:.0f}",
                      f"{losses[0]:.5f}", f"{losses[-1]:.5f}")  # fmt: skip
    return {"trl_vs_ours": round(cpu["trl"] / cpu["ours"], 2), "loss_gap": gap}, table


# -- an iteration -----------------------------------------------------------------------------


def measure_iteration(config: TeamConfig) -> tuple[Figures, Table]:
    """The time of training iterations of the phone demo, by its use."""
    model = Counted.load()
    told: list[Metrics] = []
    answering: list[float] = []
    tokens: list[int] = []
    trained: list[int] = []

    def rolled_out(_: int, __: object) -> None:
        done = model.counters
        answering.append(done.seconds)
        tokens.append(done.prompt_tokens + done.completion_tokens)
        trained.append(model.trained_tokens)

    with tempfile.TemporaryDirectory() as folder:
        trainer = TeamTrainer(
            team(model), PhoneEnvironment, jobs, config=config,
            critic=ScriptedCritic(PhoneEnvironment), adversary=ScriptedAdversary(),
            folder=Path(folder),
        )  # fmt: skip
        trainer.on_episodes = rolled_out
        told.extend(asyncio.run(trainer.run()).history)
    trained.append(model.trained_tokens)
    wall = sum(m["rollout_seconds"] + m["update_seconds"] for m in told)
    rollouts, updating = (
        sum(m["rollout_seconds"] for m in told),
        sum(m["update_seconds"] for m in told),
    )
    inside = sum(v for m in told for k, v in m.items() if k.startswith("seconds/"))
    figures = {
        "model_busy": round((answering[-1] + inside) / wall, 3),
        "iteration_s": round(wall / len(told), 2),
        "iteration_cpu_s": round(sum(m["cpu_seconds"] for m in told) / len(told), 2),
        "rollout_tokens_per_s": round(tokens[-1] / rollouts),
        "update_tokens_per_s": round(trained[-1] / updating),
        "peak_memory_mb": round(told[-1]["peak_memory_mb"] or 0.0, 1),
    }
    table = Table(
        "iteration", "wall s", "rollouts s", "update s", "CPU s", "pairs", "peak MB",
        title=f"{config.episodes} episodes, {AGENTS} agents x {ROUNDS} rounds",
    )  # fmt: skip
    for m in told:
        table.add_row(
            "shared adapter" if m["shared"] else "own adapters",
            f"{m['rollout_seconds'] + m['update_seconds']:.1f}", f"{m['rollout_seconds']:.1f}",
            f"{m['update_seconds']:.1f}", f"{m['cpu_seconds']:.1f}", f"{m['pairs']}",
            f"{m['peak_memory_mb'] or 0.0:.0f}",
        )  # fmt: skip
    table.caption = (
        f"in the model {figures['model_busy']:.0%}; answering {answering[-1] / rollouts:.0%} of "
        f"rollouts at {figures['rollout_tokens_per_s']:,} tokens/s; updating "
        f"{inside / updating:.0%} of updates at {figures['update_tokens_per_s']:,} tokens/s"
    )
    return figures, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, rougher figures")
    parser.add_argument("--only", choices=("iteration", "adapters", "trl"), help="one of the parts")
    given = parser.parse_args()
    quick = given.quick
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = TeamConfig(iterations=2, shared_iterations=1, update=UpdateConfig(method="dpo"))
    if quick:
        config = replace(
            config, episodes=16, shared_steps=10, update=replace(config.update, steps=5)
        )
    pairs = functools.cache(lambda: sample_pairs(16 if quick else 64))
    parts: dict[str, Callable[[], tuple[Figures, Table]]] = {
        "iteration": lambda: measure_iteration(config),  # first: its peak is the process's
        "adapters": lambda: measure_adapters(pairs(), 2 if quick else 10, 2 if quick else 3),
        "trl": lambda: measure_trl(pairs(), 6 if quick else 20, 2 if quick else 5),
    }
    console, figures = Console(), {}
    for name, part in parts.items():
        if given.only not in (None, name):
            continue
        try:
            measured, table = part()
        except ImportError as error:
            console.print(f"{name}: left out, {error}")
            continue
        figures.update(measured)
        console.print(table)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
