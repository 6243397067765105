"""``swarm-ui critic``: collects replies, trains a critic on them, and measures it.

The folder of a run::

    critic_run.json   the settings, with which the same command continues
    judged/           one file for each environment and purpose, with one episode in each line
    validation.json   the figures on validation episodes
    final/            the adapter with its critic.json, for train --critic learned
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.config import EnvironmentSection, ModelSection, plain
from swarm_ui.experiment.critics.judged_places import judged, opened
from swarm_ui.experiment.critics.judged_replies import AGENTS, continued, keep, temperatures
from swarm_ui.experiment.environments import environment_findings, spec_of
from swarm_ui.experiment.models import adapter_names, kind_of, model_findings, open_model
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.runs.unused_settings import unused_environment_settings
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder
from swarm_ui.optim.credit.judged import JudgedHead, Purpose
from swarm_ui.optim.stage1.corpus import check_empty, check_same
from swarm_ui.storage.run_directory import expect_no_links_out

if TYPE_CHECKING:
    from swarm_ui.optim.credit.judging import JudgingFigures
    from swarm_ui.optim.credit.learned import CriticCard, CriticConfig

FINAL = "final"
_PLAN, _FIGURES = "critic_run.json", "validation.json"


class CriticRun(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a critic's training. They cannot change when it is continued."""

    model: ModelSection
    """The language model that gets the adapter."""
    start: str = ""
    """The adapter that the training starts from: its folder, or its name in this package. Empty: a
    new one."""
    agent: ModelSection
    """The model whose replies are judged."""
    places: tuple[EnvironmentSection, ...]
    """The environments; the ``seed`` of each chooses its episodes."""
    episodes: int = 300
    """Training episodes in each environment."""
    validation: int = 60
    """Validation episodes in each environment: training tasks with seeds of validation."""
    minutes: float | None = None
    """Maximum duration of the training; ``None``: no limit."""
    epochs: float = 1.0
    learning_rate: float = 5e-4
    prompt_format: str = "compact"
    seed: int = 0
    """Seed of the training."""

    def __post_init__(self) -> None:
        few = [name for name in ("episodes", "validation") if getattr(self, name) < 1]
        if few:
            raise ConfigError(f"critic: --{few[0]} must be at least 1, got {getattr(self, few[0])}")
        if self.minutes is not None and not self.minutes > 0:
            raise ConfigError(f"critic: --minutes must be above 0, got {self.minutes:g}")
        names = [place.name for place in self.places]
        if len({*names}) < len(names):
            raise ConfigError(f"critic: an environment is named twice: {', '.join(names)}")

    def training(self) -> CriticConfig:
        """The settings of the training. Raises ``ConfigError`` for wrong ones."""
        from swarm_ui.optim.credit.learned import CriticConfig

        return CriticConfig(
            prompt_format=self.prompt_format,
            epochs=self.epochs,
            minutes=math.inf if self.minutes is None else self.minutes,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )

    def check(self) -> None:
        """Raise ``ConfigError`` for a wrong setting or a missing package, before anything is
        done."""
        for section, agents in ((self.agent, AGENTS), (self.model, 0)):
            for _, mistake in model_findings(section, agents):
                raise ConfigError(mistake)
        if kind_of(self.model) != "local":
            raise ConfigError(
                f"'{self.model.name}' cannot be trained as a critic: expected a language model in "
                "this process (smollm2, a folder, or org/name on the Hugging Face Hub)"
            )
        try:
            self.training()
        except ImportError as error:
            raise MissingExtra("train", "a learned critic", error.name or "torch") from error
        if self.start:
            from swarm_ui.nodes.models.transformers.adapters.files import read_adapter

            read_adapter(adapter_folder(self.start))  # one clear error for a foreign file
        specs = [spec_of(place.name) for place in self.places]
        for place in self.places:
            unused = unused_environment_settings(place, specs)
            for _, mistake in [*environment_findings(place), *unused]:
                raise ConfigError(mistake)
            spec_of(place.name).for_training(place)


class CriticResult(NamedTuple):
    """The result of a critic's training."""

    folder: Path
    card: CriticCard
    figures: dict[str, JudgingFigures]
    """Figures on the validation episodes, by environment."""


def make_critic(work: CriticRun, out: Path, display: ProgressDisplay) -> CriticResult:
    """Collect replies, train a critic and measure it, or continue an interrupted run.

    Episodes that were collected are kept. A training that was interrupted begins again.

    Raises:
        ConfigError: wrong settings, a folder that holds something else, nothing to learn from, or
            a full disk.
        ModelError, EnvironmentFault, LearningError: as the agents, the environments and the
            training raise them.
    """
    work.check()
    _begin(work, out)
    if not (out / FINAL).exists():
        with threads_kept():
            asyncio.run(_collect(work, out, display))
        _train(work, out, display)
    from swarm_ui.optim.credit.judging import JudgingFigures
    from swarm_ui.optim.credit.learned import read_card

    try:
        figures = msgspec.json.decode((out / _FIGURES).read_bytes(), type=dict[str, JudgingFigures])
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(
            f"'{out / _FIGURES}' does not hold the figures of a critic: {error}"
        ) from error
    return CriticResult(out / FINAL, read_card(out / FINAL), figures)


def judged_file(work: CriticRun, out: Path, section: EnvironmentSection, purpose: Purpose) -> Path:
    """The file of an environment's replies."""
    name = f"{work.places.index(section) + 1}-{section.name}".replace(":", ".").replace("/", ".")
    return out / "judged" / f"{name}-{purpose}.jsonl"


async def _collect(work: CriticRun, out: Path, display: ProgressDisplay) -> None:
    """Play every episode that is not in its file yet, and append its judged replies to the file."""
    async with open_model(work.agent) as model:
        names = adapter_names(work.agent, AGENTS)
        for section in work.places:
            async with opened(section, work.episodes, work.validation) as place:
                for purpose, jobs in place.jobs.items():
                    settings: dict[str, object] = {
                        "environment": plain(section),
                        "agent": plain(work.agent),
                        "temperatures": list(temperatures(purpose)),
                        "labels": place.labels,
                    }
                    path = judged_file(work, out, section, purpose)
                    head = JudgedHead(purpose=purpose, settings=settings)
                    with continued(path, head, jobs) as (file, left):
                        if not left:
                            continue
                        label = f"{place.name}, {purpose}"
                        with display.bar(
                            label, len(left), share=False, together=place.concurrency
                        ) as bar:
                            await keep(file, judged(place, purpose, left, model, names), bar)


def _train(work: CriticRun, out: Path, display: ProgressDisplay) -> None:
    """Train, scale, measure, and write the critic."""
    from swarm_ui.experiment.critics.trained_critic import (
        load_judge,
        read_screens,
        read_validation,
        trained_critic,
    )
    from swarm_ui.optim.credit.judging import judge
    from swarm_ui.optim.credit.learned import ADAPTER, CriticCard, save_critic

    files = [judged_file(work, out, section, "train") for section in work.places]
    screens = read_screens(files)
    episodes = {
        section.name: read_validation([judged_file(work, out, section, "validation")])
        for section in work.places
    }
    every = [episode for found in episodes.values() for episode in found]
    if not screens or not every:
        raise ConfigError(
            f"critic: no episode in '{out / 'judged'}' ended without a fault, so there is nothing "
            f"to {'scale scores on' if screens else 'learn from'}; repeat the command"
        )
    graded = [episode for episode in every if episode.labels == "solver"]
    card = CriticCard(
        base_model=shown_name(work.model.name),
        settings={"environments": [section.name for section in work.places]}
        | ({"start": shown_name(work.start)} if work.start else {}),
    )
    model = load_judge(work.model, work.start)
    with display.bar("critic", 1.0) as bar:
        made = trained_critic(model, screens, graded or every, work.training(), card, bar)
    figures = {
        name: asyncio.run(judge(found, "learned critic", made.score))
        for name, found in episodes.items()
        if found
    }
    write_atomic(out / _FIGURES, msgspec.json.format(msgspec.json.encode(figures), indent=1))
    save_critic(model, ADAPTER, made.card, out / FINAL)


def shown_name(model: str) -> str:
    """The name of a model or an adapter in files: of a folder only its last part."""
    return Path(model).resolve().name if Path(model).is_dir() else model


def _begin(work: CriticRun, out: Path) -> None:
    """Write the settings, or check that they are those of an interrupted run."""
    path = out / _PLAN
    expect_no_links_out(out)
    if not path.exists():
        check_empty(out, "critic")
        write_atomic(path, msgspec.json.format(msgspec.json.encode(work), indent=1))
        return
    try:
        before = msgspec.json.decode(path.read_bytes(), type=CriticRun)
    except (OSError, msgspec.MsgspecError, UnicodeError, ConfigError) as error:
        raise ConfigError(
            f"'{path}' does not belong to the training of a critic: {error}"
        ) from error
    fields = CriticRun.__struct_fields__
    check_same(before, work, fields, out, "use the same, or choose another folder")


@contextmanager
def threads_kept() -> Iterator[None]:
    """Restore torch's number of threads at the end: the embedded agent sets it to one, which is too
    few for training.
    """
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
