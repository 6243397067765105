"""Stage 1 by names: a corpus from an environment or from recordings, and fine-tuning on it."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.environment import Graded
from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.recorded.benchmark import Demonstrations
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, held_out_rule, opened
from swarm_ui.experiment.model_settings import Agent, AnyModel
from swarm_ui.experiment.models import describe_model, open_model, silence_transformers
from swarm_ui.experiment.progress import Bar
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder, model_folder
from swarm_ui.rollout import Job

if TYPE_CHECKING:
    from swarm_ui.optim.config import Result
    from swarm_ui.optim.stage1 import CorpusConfig, FinetuneConfig, HeldOut, Models, Totals

DEFAULT_WALKS = 100


async def make_corpus(
    env: Benchmark,
    config: CorpusConfig,
    model: AnyModel,
    out: Path,
    bar: Bar,
    *,
    walks: int | None = None,
    parallel: int = 1,
) -> Totals:
    """Make a corpus, or complete one that was interrupted.

    ``model`` plays all roles; if it is the embedded agent that nobody named, scripts do, in an
    environment that can solve its tasks. ``walks``: their number; ``None``: 100, or all recordings.
    Raises ``ConfigError`` for wrong settings or a full disk, and what ``optim.stage1.synthesize``
    raises."""
    from swarm_ui.optim.stage1 import synthesize

    first = True

    def report(done: int, count: int, _: Any) -> None:
        nonlocal first
        if first:  # walks of an earlier attempt are counted too
            bar.start_from(done - 1, count)
        first = False
        bar.update(done)

    split = env.training_split()
    async with opened(env, split) as environment, AsyncExitStack() as stack:
        if environment.jobs is not None:
            jobs = environment.jobs(env.tasks)[: walks or None]
        else:
            names = await env.task_names(split, environment)
            jobs = env.training_jobs(names, walks or DEFAULT_WALKS, random.Random(config.seed))
        rule = held_out_rule([env])
        if isinstance(env, Demonstrations):
            rule = await rule_of_recordings(environment, jobs)
        models = await _models(env, environment, model, stack)
        try:
            return await synthesize(
                environment.make, models, jobs, out, held_out=rule, config=config,
                parallel=min(parallel, environment.max_concurrency or parallel), report=report,
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(
                f"cannot write '{out}': {error.strerror or error}; the finished walks "
                "are kept: make room, and repeat the command"
            ) from error


async def _models(
    env: Benchmark, environment: Opened, model: AnyModel, stack: AsyncExitStack
) -> Models:
    """The model or the script of each role. Raises ``ConfigError`` if it cannot play them."""
    from swarm_ui.optim.stage1 import Models

    if isinstance(model, Agent) and "name" in model.model_fields_set:
        raise ConfigError(f"{describe_model(model)} reads screens only, not requests in words; "
                          "name a language model with --model, or none")  # fmt: skip
    if not isinstance(model, Agent):
        asked = await stack.enter_async_context(open_model(model))
        return Models(agent=asked, adversary=asked, critic=asked)
    async with environment.one() as one:
        if not isinstance(one, Graded):
            raise ConfigError(f"'{env.name}' cannot solve its own tasks, so there is no script for "
                              "them: name a model with --model")  # fmt: skip
    return Models.scripted()


async def rule_of_recordings(environment: Opened, jobs: list[Job]) -> HeldOut:
    """The rule of the environment in which episodes were recorded, which are checked against it.

    Environments of one family, such as ``phone`` and ``phone-split``, are not told apart by the
    names in recordings, so the rules of the whole family apply.
    """
    async with environment.one() as one:
        recorded = str(one.name).removeprefix("demonstrations on ")
    family = [
        kind() for name, kind in ENVIRONMENTS.items()
        if recorded.startswith(name.partition("-")[0])
    ]  # fmt: skip
    rule = held_out_rule(family)
    rule.check(recorded, jobs, "synthesize")
    return rule


def leads() -> bool:
    """Whether this process is the first one, or the only one, started by ``accelerate launch``."""
    return os.environ.get("RANK", "0") == "0"


def finetune_model(
    name: str, corpus: Sequence[Path], out: Path, config: FinetuneConfig, bar: Bar, adapter: str
) -> list[Result]:
    """Fine-tune a model; see :func:`swarm_ui.optim.stage1.finetune`.

    ``name``: a folder, a pulled model, or a name on the Hugging Face Hub. ``adapter``: the one to
    start from, by its folder or name; empty: a new one."""
    quiet()
    from swarm_ui.nodes.models.transformers.adapter_files import read_adapter
    from swarm_ui.optim.stage1 import finetune

    start = adapter_folder(adapter) if adapter else None
    if start is not None:
        read_adapter(start)  # one clear error for a damaged or foreign file
    return finetune(
        model_folder(name), list(corpus), out,
        config=config, report=bar.update, name=shown_name(name), adapter=start,
    )  # fmt: skip


def shown_name(model: str) -> str:
    """The name of a model or an adapter in files: no path of this machine."""
    return Path(model).resolve().name if os.path.isdir(model) else model


def quiet() -> None:
    """Hide progress bars and warnings of the libraries; this library has its own."""
    try:
        import datasets

        silence_transformers()
    except ImportError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "datasets") from error
    datasets.disable_progress_bars()
    warnings.filterwarnings("ignore", module=r"(trl|peft|torch|accelerate)\..*")
