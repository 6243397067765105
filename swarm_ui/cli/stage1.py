"""``synthesize``, ``finetune`` and ``critic``: corpora, and language models trained on them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import repeatable
from swarm_ui.cli.output import Output, shown, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, SOURCES, kind_of_environment
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.model_settings import Language
from swarm_ui.experiment.stage1 import finetune_model, leads, make_corpus

if TYPE_CHECKING:
    from swarm_ui.experiment.critic_run import CriticRun


@flags.command(
    flags.words("ENV [TASK...] [SETTING=VALUE...]", f"an environment, {', '.join(SOURCES)}; its "
                "tasks; settings as synthesize.levels=[3]",
                flags.one_of(*ENVIRONMENTS, *SOURCES)),
    flags.option("out", Path, "FOLDER", "where to write; an interrupted corpus continues", "-o",
                 panel=""),
    flags.option("walks", int, "N", "(default: 100; recordings: all)", "-n", panel="", least=1),
    flags.option("prompt_format", str, "NAME", "of prompts and replies: compact or json (default)",
                 setting="synthesize.prompt_format", panel="",
                 complete=flags.one_of("compact", "json")),
    flags.option("model", str, "NAME", "acts, writes and judges, as --model of other commands "
                 "(default: scripts that know the tasks)", "-m", setting="model.name"),
    flags.URL,
    flags.option("parallel", int, "N", "walks at the same time (default: 1)", "-j", least=1),
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

    output, out = arguments.output, arguments["out"]
    if out is None:
        raise ConfigError("name the folder of the corpus with --out FOLDER")
    if not arguments.words:
        raise ConfigError("name an environment, such as phone, or a source of demonstrations")
    config = load(arguments["config"], arguments.in_environment())
    # Models that are trained on short prompts learn short replies.
    given = {"reasons": config.synthesize.get("prompt_format", "json") == "json"}
    made_as = msgspec.convert(given | config.synthesize, CorpusConfig)
    parallel, walks = arguments["parallel"] or 1, arguments["walks"]
    with output.progress.bar(
        f"walks in {config.env.name}", walks or 0, share=False, together=parallel
    ) as bar:
        totals = repeatable(out, lambda: asyncio.run(make_corpus(
            config.env, made_as, config.model, out, bar, walks=walks, parallel=parallel
        )))  # fmt: skip
    most = sorted(totals.dropped.items(), key=lambda pair: -pair[1])[:8]
    output.show(table(f"corpus of {totals.walks} walks", ["", "number"], [
        ("solved walks", totals.successes), ("walks with a fault", totals.faults),
        *totals.samples.items(), *((f"dropped, {why}", number) for why, number in most),
    ]))  # fmt: skip
    output.command("next", "swarm-ui", "finetune", "MODEL", str(out), "OUT")
    return output.done(corpus=str(out), **msgspec.to_builtins(totals))


@flags.command(
    flags.words("MODEL CORPUS... OUT [SETTING=VALUE...]", f"{flags.LANGUAGE_MODEL}; corpora of one "
                "format; folder to write, where an interrupted fine-tuning continues; settings as "
                "finetune.rank=8", flags.one_of()),
    flags.option("adapters", str, "FOLDER", "adapter to start from: its folder, or smollm2-phone "
                 "(default: a new one)", panel=""),
    flags.CONFIG, flags.JSON, flags.QUIET,
)  # fmt: skip
def finetune(arguments: flags.Arguments) -> int:
    """Train a language model on a corpus: SFT on each level in order, then DPO on level 3.

    OUT/final holds the adapter, and the prompt format it was trained with. Repeat the command to
    continue after an interruption. Every field of the class FinetuneConfig is a setting in the
    section \\[finetune]; see docs/training.md.

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
    columns = ["stage", "samples", "too long", "steps", "mean loss", "minutes"]
    output.show(table(f"{model}, fine-tuned", columns, [
        (at.stage, at.samples, at.skipped, at.steps, shown(at.loss, 3), at.seconds / 60)
        for at in results
    ]))  # fmt: skip
    if skipped := sum(at.skipped for at in results):
        output.warn(f"{skipped} samples have more than {config.max_length} tokens and were left "
                    "out")  # fmt: skip
    final = out / "final"
    output.command("next", "swarm-ui", "eval", "phone", "--model", model, "--adapters", str(final))
    return output.done(final=str(final), stages=msgspec.to_builtins(results))


@flags.command(
    flags.words("MODEL ENV... OUT [SETTING=VALUE...]", "who learns to judge: "
                f"{flags.LANGUAGE_MODEL}; environments, whose training tasks are played; folder to "
                "write, where an interrupted training continues; settings as env.devices=16 or "
                "finetune.learning_rate=1e-3", flags.one_of(*ENVIRONMENTS)),
    flags.option("episodes", int, "N", "of each environment, for training; a fifth as many measure "
                 "the scores (default: 300)", "-n", panel="", least=1),
    flags.option("epochs", float, "N", "how often each screen is seen (default: 1)",
                 setting="finetune.epochs", panel=""),
    flags.option("start", str, "FOLDER", "adapter to start from: its folder, or a name such as "
                 "smollm2-phone (default: a new one)", panel=""),
    flags.option("agent", str, "NAME", "who makes the replies (default: base)",
                 setting="model.name"),
    flags.ADAPTERS,
    flags.option("seed", int, "N", "equal seeds give equal episodes and weights (default: 0)",
                 setting="finetune.seed", panel=""),
    flags.JSON, flags.QUIET,
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
    from swarm_ui.experiment.critic_run import make_critic
    from swarm_ui.optim.credit.learned import read_card

    made = repeatable(out, lambda: make_critic(work, out, output.progress))
    folder, card = out / "final", read_card(out / "final")
    output.show(table(
        f"critic of {card.base_model}, trained on {card.replies} replies",
        ["environment", "labels", "agents' replies", "right %", "AUC [95 %]"],
        [(name, made.labels[name], at["replies"], shown(at["right"], 0, 100),
          at["auc"] and "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**at["auc"]))
         for name, at in made.figures.items()],
        caption="On validation episodes: training tasks with parameters of their own.",
    ))  # fmt: skip
    if "outcome" in made.labels.values():
        output.say("labels by outcome: right steps of failed episodes count as wrong")
    output.command("next", "swarm-ui", "train", "ENV", "--model", work.model.name, "--critic",
                   "learned", f"critic.folder={folder}")  # fmt: skip
    figures = {name: {"labels": made.labels[name], **at} for name, at in made.figures.items()}
    return output.done(critic=str(folder), replies=card.replies, environments=figures,
                       training=card.settings, validation=card.validation)  # fmt: skip


def _critic_run(arguments: flags.Arguments) -> CriticRun:
    """The run that the arguments describe. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.experiment.critic_run import CriticRun

    if len(arguments.words) < 3:
        raise ConfigError("name a model, at least one environment, and the folder to write")
    name, *envs, _ = arguments.words
    model = load(overrides=[f"MODEL model.name={json.dumps(name)}"]).model
    if not isinstance(model, Language):
        raise ConfigError(
            f"'{name}' cannot be trained as a critic; expected {flags.LANGUAGE_MODEL}"
        )
    places = []
    for env in envs:  # each with those of the given settings that it has
        known = [f"env.{field}=" for field in kind_of_environment(env).model_fields]
        own = [word for word in arguments.overrides if word.startswith(tuple(known))]
        places.append(load(overrides=[f"ENV env.name={json.dumps(env)}", *own]).env)
    others = load(overrides=[word for word in arguments.overrides if not word.startswith("env.")])
    return CriticRun(
        model=model,
        start=arguments["start"] or "",
        agent=others.model,
        places=tuple(places),
        episodes=arguments["episodes"] or 300,
        finetune=others.finetune,
    )
