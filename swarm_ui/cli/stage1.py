"""``synthesize``, ``finetune`` and ``critic``: corpora, and language models trained on them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from swarm_ui.budget import Budget
from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import repeatable
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, SOURCES, kind_of_environment
from swarm_ui.experiment.loading import listed, load, parsed_settings
from swarm_ui.experiment.model_settings import Language, SettingsError, model_named
from swarm_ui.experiment.stage1 import finetune_model, leads, make_corpus

if TYPE_CHECKING:
    from swarm_ui.experiment.critic_run import CriticResult, CriticRun
    from swarm_ui.stats import Interval


@flags.command(
    flags.words("ENV [TASK...] [SETTING=VALUE...]", f"an environment, {', '.join(SOURCES)}; its "
                "tasks; settings as synthesize.levels=[3]",
                flags.one_of(*ENVIRONMENTS, *SOURCES)),
    flags.option("out", Path, "FOLDER", "folder of the corpus; an interrupted one continues", "-o",
                 panel=""),
    flags.option("walks", int, "N", "number of walks (default: 100; recordings: all)", "-n",
                 panel="", least=1),
    flags.option("prompt_format", str, "NAME", "how prompts and replies are written: compact or "
                 "json (default: json)", setting="synthesize.prompt_format", panel="",
                 complete=flags.one_of("compact", "json")),
    flags.option("model", str, "NAME", "a model that acts, writes and judges, as for --model of "
                 "other commands (default: scripts that know the tasks)", "-m", panel=flags.WHO),
    flags.option("url", str, "URL", "endpoint of the model, up to /v1", panel=flags.WHO),
    flags.option("max_calls", int, "N", "maximum number of calls to the model for this folder, in "
                 "all repetitions of the command (default: any number)", least=1),
    flags.option("max_tokens", int, "N", "maximum number of tokens of these calls (default: any "
                 "number)", least=1),
    flags.option("parallel", int, "N", "number of walks at the same time (default: 1)", "-j",
                 least=1),
    flags.option("seed", int, "N", "equal seeds give equal walks (default: 0)",
                 setting="synthesize.seed", panel=""),
    flags.CONFIG, flags.JSON, flags.QUIET,
)  # fmt: skip
def synthesize(arguments: flags.Arguments) -> int:
    """Make a corpus for stage 1 from walks (exploratory episodes) in an environment.

    Test splits of the environment are held out. Repeat the command to continue an interrupted
    synthesis, or with more walks to extend the corpus.

    Example: [bold]swarm-ui synthesize phone --prompt-format compact -n 200 -o corpus[/]
    """
    from swarm_ui.optim.stage1 import CorpusConfig

    output, out, name = arguments.output, arguments["out"], arguments["model"]
    if out is None:
        raise ConfigError("name the folder of the corpus with --out FOLDER")
    if not arguments.words:
        raise ConfigError("name an environment, such as phone, or a source of demonstrations")
    limits = arguments.given("url", "max_calls", "max_tokens")
    if limits and name is None:
        raise ConfigError(f"{limits[0]}: no model is asked; name one with --model")
    config = load(arguments["config"], arguments.in_environment())
    # Models that are trained on short prompts learn short replies.
    given = {"reasons": config.synthesize.get("prompt_format", "json") == "json"}
    made_as = msgspec.convert(given | config.synthesize, CorpusConfig)
    model = None if name is None else model_named(name, url=arguments["url"])
    parallel, walks = arguments["parallel"] or 1, arguments["walks"]
    with output.progress.bar(
        f"walks in {config.env.name}", walks or 0, share=False, together=parallel
    ) as bar:
        budget = Budget(arguments["max_calls"], arguments["max_tokens"])
        totals = repeatable(out, lambda: asyncio.run(make_corpus(
            config.env, made_as, model, out, bar, walks=walks, parallel=parallel, budget=budget
        )))  # fmt: skip
    made = table(f"corpus of {totals.walks} walks", ["", "number"])
    made.add_row("solved walks", str(totals.successes))
    made.add_row("walks with a fault", str(totals.faults))
    for level, number in totals.samples.items():
        made.add_row(level, str(number))
    made.add_row("calls to models", str(totals.calls))
    made.add_row("their tokens", str(totals.tokens))
    for reason, number in sorted(totals.dropped.items(), key=lambda pair: -pair[1])[:8]:
        made.add_row(f"dropped, {reason}", str(number))
    output.show(made)
    output.command("next", "swarm-ui", "finetune", "MODEL", str(out), "OUT")
    return output.done(corpus=str(out), **msgspec.to_builtins(totals))


@flags.command(
    flags.words("MODEL CORPUS... OUT [SETTING=VALUE...]", f"{flags.LANGUAGE_MODEL}; folders of "
                "corpora of one format; folder to write, where an interrupted fine-tuning "
                "continues; settings as finetune.rank=8", flags.one_of()),
    flags.option("adapters", str, "FOLDER", "adapter to start from: its folder, or smollm2-phone "
                 "(default: a new one)", panel=""),
    flags.CONFIG, flags.JSON, flags.QUIET,
)  # fmt: skip
def finetune(arguments: flags.Arguments) -> int:
    """Train a language model on a corpus: SFT on each level in order, then DPO on level 3.

    OUT/final holds the adapter (or with finetune.method=full the model), and the prompt format
    it was trained with. Repeat the command to continue after an interruption. Every field of the
    class FinetuneConfig is a setting in the section \\[finetune]; see docs/training.md.

    Example: [bold]swarm-ui finetune smollm2 corpus base-agent finetune.epochs=0.5[/]
    """
    from swarm_ui.optim.stage1 import FinetuneConfig

    output = arguments.output if leads() else Output(quiet=True)
    settings = load(arguments["config"], arguments.overrides).finetune
    config = msgspec.convert(settings, FinetuneConfig)
    if len(arguments.words) < 3:
        raise ConfigError("name a model, at least one corpus, and the folder to write")
    model, *corpora, last = arguments.words
    corpus, out = [Path(word) for word in corpora], Path(last)
    with output.progress.bar("finetune", 1.0) as bar:
        adapter = arguments["adapters"] or ""
        results = repeatable(out, lambda: finetune_model(model, corpus, out, config, bar, adapter))
    if not leads():
        return exits.OK
    made = table(
        f"{model}, fine-tuned",
        ["stage", "samples", "too long", "steps", "mean loss", "minutes"],
    )
    for at in results:
        made.add_row(at.stage, str(at.samples), str(at.skipped),
                     str(at.steps), f"{at.loss:.3f}", f"{at.seconds / 60:.1f}")  # fmt: skip
    output.show(made)
    if skipped := sum(at.skipped for at in results):
        output.warn(f"{skipped} samples have more than {config.max_length} tokens and were left "
                    "out")  # fmt: skip
    final = out / "final"
    tuned = [model, "--adapters", str(final)] if config.method == "lora" else [str(final)]
    output.command("next", "swarm-ui", "eval", "phone", "--model", *tuned)
    return output.done(final=str(final), stages=msgspec.to_builtins(results))


@flags.command(
    flags.words("MODEL ENV... OUT [SETTING=VALUE...]", f"the model that learns to judge: "
                f"{flags.LANGUAGE_MODEL}; environments, whose training tasks are played; the "
                "folder to write, where an interrupted training continues; settings as "
                "env.devices=16 or finetune.learning_rate=1e-3", flags.one_of(*ENVIRONMENTS)),
    flags.option("episodes", int, "N", "training episodes in each environment; a fifth as many "
                 "scale and measure the scores (default: 300)", "-n", panel=""),
    flags.option("epochs", float, "N", "how often each screen is seen (default: 1)",
                 setting="finetune.epochs", panel=""),
    flags.option("start", str, "FOLDER", "adapter that the training starts from: its folder, or "
                 "its name, such as smollm2-phone (default: a new one)", panel=""),
    flags.option("agent", str, "NAME", "who makes the replies: base, or a model as for --model of "
                 "other commands (default: base)", panel=flags.WHO),
    flags.option("adapters", str, "FOLDER", "adapters of the agents, such as RUN/adapters, or one "
                 "for all (default: none)", panel=flags.WHO),
    flags.option("seed", int, "N", "equal seeds give equal episodes and weights (default: 0)",
                 setting="finetune.seed", panel=""),
    flags.DRY_RUN, flags.JSON, flags.QUIET,
)  # fmt: skip
def critic(arguments: flags.Arguments) -> int:
    """Train a critic that judges single replies without knowing the solution.

    A team plays training tasks; each reply is labelled by the environment's solver, or by the
    outcome if it has no solver. An adapter of MODEL learns which are right. Its probabilities are
    scaled on validation episodes. OUT/final is the critic for train --critic learned.

    Example: [bold]swarm-ui critic smollm2 phone invented critic --epochs 0.5[/]
    """
    output, work = arguments.output, _critic_run(arguments)
    out = Path(arguments.words[-1])
    if arguments["dry_run"]:
        work.check()
        episodes = {place.name: work.episodes + work.validation for place in work.places}
        facts = {
            "model": work.model.name,
            "replies of": f"{work.agent.name}, 4 agents",
            **{f"episodes, {name}": f"{count}" for name, count in episodes.items()},
            "training": f"{work.training().epochs:g} epochs",
        }
        output.show(facts_table("would be trained, nothing is written", facts.items()))
        return output.done(dry_run=True, episodes=episodes)
    from swarm_ui.experiment.critic_run import make_critic

    return _show_critic(work, repeatable(out, lambda: make_critic(work, out, output.progress)),
                        output)  # fmt: skip


def _critic_run(arguments: flags.Arguments) -> CriticRun:
    """The run that the arguments describe. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.experiment.critic_run import CriticRun

    if len(arguments.words) < 3:
        raise ConfigError("name a model, at least one environment, and the folder to write")
    name, *envs, _ = arguments.words
    model = model_named(name)
    if not isinstance(model, Language):
        raise ConfigError(
            f"'{name}' cannot be trained as a critic: expected a language model in this process "
            "(smollm2, a folder, or org/name on the Hugging Face Hub)"
        )
    section = parsed_settings(arguments.overrides).get("env", {})

    def place(env: str) -> Any:
        """The section of an environment, with those of the given settings that it has."""
        known = kind_of_environment(env).model_fields
        return {"name": env, **{key: value for key, value in section.items() if key in known}}

    others = [word for word in arguments.overrides if "env." not in word.partition("=")[0]]
    given = {key: arguments[key] for key in ("episodes", "start") if arguments[key] is not None}
    try:
        return CriticRun(
            model=model,
            agent=model_named(arguments["agent"] or "base", adapters=arguments["adapters"]),
            places=tuple(map(place, envs)),
            finetune=load(overrides=others).finetune,
            **given,
        )
    except ValidationError as error:
        raise SettingsError(listed(error, {})) from error


def _show_critic(work: CriticRun, made: CriticResult, output: Output) -> int:
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
    figures = {
        name: {"labels": made.labels[name], **msgspec.to_builtins(at)}
        for name, at in made.figures.items()
    }
    return output.done(critic=str(made.folder), replies=made.card.replies, environments=figures,
                       training=made.card.settings, validation=made.card.validation)  # fmt: skip


def _interval(found: Interval | None) -> str:
    return "–" if found is None else f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
