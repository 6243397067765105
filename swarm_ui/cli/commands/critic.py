"""``swarm-ui critic``: trains a critic that has not seen the solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, kind_of_environment
from swarm_ui.experiment.loading import listed, parsed_settings
from swarm_ui.experiment.model_settings import Language, SettingsError, model_named

if TYPE_CHECKING:
    from swarm_ui.experiment.critic_run import CriticResult, CriticRun
    from swarm_ui.stats import Interval


@flags.command(
    flags.words("MODEL ENV... OUT [SETTING=VALUE...]", f"the model that learns to judge: "
                f"{flags.LANGUAGE_MODEL}; environments, whose training tasks are played; the "
                "folder to write, where an interrupted training continues; settings as "
                "env.devices=16", flags.one_of(*ENVIRONMENTS)),
    flags.option("episodes", int, "N", "training episodes in each environment (default: 300)", "-n",
                 panel=""),
    flags.option("validation", int, "N", "episodes in each environment on which scores are scaled "
                 "and the critic is measured (default: 60)", panel=""),
    flags.option("epochs", float, "N", "how often each screen is seen (default: 1)", panel=""),
    flags.option("learning_rate", float, "RATE", "highest learning rate (default: 5e-4)", panel=""),
    flags.option("start", str, "FOLDER", "adapter that the training starts from: its folder, or "
                 "its name, such as smollm2-phone (default: a new one)", panel=""),
    flags.option("agent", str, "NAME", "who makes the replies: base, or a model as for --model of "
                 "other commands (default: base)", panel=flags.WHO),
    flags.option("adapters", str, "FOLDER", "adapters of the agents, such as RUN/adapters, or one "
                 "for all (default: none)", panel=flags.WHO),
    flags.option("prompt_format", str, "NAME", "how screens and replies are written in the "
                 "questions: compact or json (default: compact)", panel="",
                 complete=flags.one_of("compact", "json")),
    flags.option("seed", int, "N", "equal seeds give equal episodes and weights (default: 0)",
                 panel=""),
    flags.switch("dry_run", "--dry-run", help="check the settings, show the "
                 "work, and stop"),
    flags.JSON,
    flags.QUIET,
)  # fmt: skip
def critic(arguments: flags.Arguments) -> int:
    """Train a critic that judges single replies without knowing the solution.

    A team plays training tasks; each reply is labelled by the environment's solver, or by the
    outcome if it has no solver. An adapter of MODEL learns which are right. Its probabilities are
    scaled on validation episodes. OUT/final is the critic for train --critic learned.

    Example: [bold]swarm-ui critic smollm2 phone invented critic --epochs 0.5[/]
    """
    output, work = arguments.output, _work(arguments)
    out = Path(arguments.words[-1])
    if arguments["dry_run"]:
        work.check()
        return _show_plan(work, output)
    from swarm_ui.experiment.critic_run import make_critic

    try:
        made = make_critic(work, out, output.progress)
    except (KeyboardInterrupt, BudgetExceeded) as error:
        resume = f"the same command (what is finished in {out} is kept)"
        raise Stopped(out, resume, error) from error
    return _show(work, made, output)


def _work(arguments: flags.Arguments) -> CriticRun:
    """The run that the arguments describe. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.experiment.critic_run import CriticRun

    if len(arguments.words) < 3:
        raise ConfigError("name a model, at least one environment, and the folder to write")
    model, *envs, _ = arguments.words
    section = parsed_settings(arguments.overrides).get("env", {})
    names = ("episodes", "validation", "epochs", "learning_rate", "prompt_format",
             "start", "seed")  # fmt: skip
    given = {name: arguments[name] for name in names if arguments[name] is not None}
    agent = model_named(arguments["agent"] or "base", adapters=arguments["adapters"])
    try:
        return CriticRun(
            model=language_model(model),
            agent=agent,
            places=tuple(_place(name, section) for name in envs),
            **given,
        )
    except ValidationError as error:
        raise SettingsError(listed(error, {})) from error


def _place(name: str, section: dict[str, object]) -> Any:
    """The section of an environment, with those of the given settings that it has."""
    known = kind_of_environment(name).model_fields
    return {"name": name, **{key: value for key, value in section.items() if key in known}}


def language_model(name: str) -> Language:
    """The model that learns. Raises ``ConfigError`` if it is no language model of this process."""
    found = model_named(name)
    if not isinstance(found, Language):
        raise ConfigError(
            f"'{name}' cannot be trained as a critic: expected a language model in this process "
            "(smollm2, a folder, or org/name on the Hugging Face Hub)"
        )
    return found


def _show(work: CriticRun, made: CriticResult, output: Output) -> int:
    caption = "On validation episodes: training tasks with parameters of their own."
    before, after = (made.card.validation.get(name) for name in ("error_unscaled", "error"))
    if before is not None and after is not None:
        caption += f" Scaling changed the calibration error from {before:.3f} to {after:.3f}."
    shown = table(
        f"critic of {made.card.base_model}, trained on {made.card.replies} replies",
        ["environment", "labels", "agents' replies", "right %", "AUC [95 %]",
         "calibration error"],
        caption=caption,
    )  # fmt: skip
    for name, at in made.figures.items():
        shown.add_row(
            name, made.labels[name], str(at.replies),
            "–" if at.right is None else f"{100 * at.right:.0f}",
            _interval(at.auc), "–" if at.error is None else f"{at.error:.3f}",
        )  # fmt: skip
    output.show(shown)
    if "outcome" in made.labels.values():
        output.say("labels by outcome: right steps of failed episodes count as wrong")
    output.command("next", "swarm-ui", "train", "ENV", "--model", work.model.name, "--critic",
                   "learned", f"critic.folder={made.folder}")  # fmt: skip
    return output.done(
        critic=str(made.folder),
        replies=made.card.replies,
        training=made.card.settings,
        validation=made.card.validation,
        environments={
            name: {"labels": made.labels[name], **msgspec.to_builtins(at)}
            for name, at in made.figures.items()
        },
    )


def _show_plan(work: CriticRun, output: Output) -> int:
    episodes = {place.name: work.episodes + work.validation for place in work.places}
    facts = {
        "model": work.model.name,
        "replies of": f"{work.agent.name}, 4 agents",
        **{f"episodes, {name}": f"{count}" for name, count in episodes.items()},
        "training": f"{work.epochs:g} epochs",
    }
    output.show(facts_table("would be trained, nothing is written", facts.items()))
    return output.done(dry_run=True, episodes=episodes)


def _interval(found: Interval | None) -> str:
    return "–" if found is None else f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
