"""``swarm-ui synthesize``: makes a corpus for stage 1."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.config import checked
from swarm_ui.experiment.environments import ENVIRONMENTS
from swarm_ui.experiment.environments.sources import SOURCES
from swarm_ui.experiment.runs.unused_settings import typed
from swarm_ui.experiment.stage1.synthesis import (
    NONE,
    ROLES,
    SCRIPTED,
    Synthesis,
    make_corpus,
)

_ROLE = "scripted, or a model as for --model (default: that of --model, or scripted)"


def _environments(incomplete: str) -> list[str]:
    return flags.one_of(*ENVIRONMENTS, *SOURCES)(incomplete)


@flags.command(
    replace(flags.argument("env", str, "ENV", f"an environment, {', '.join(SOURCES)}",
                           "environment.name", _environments), type=str, default=...),
    flags.option("out", Path, "FOLDER", "folder of the corpus; an interrupted one continues", "-o",
                 panel=""),
    flags.option("walks", int, "N", "number of walks (default: 100; recordings: all)", "-n",
                 panel="", least=1),
    flags.option("levels", str, "N,N", "levels to make: 1 questions, 2 instructions of one step, "
                 "3 preferences (default: 1,2,3)", panel=""),
    flags.option("prompt_format", str, "NAME", "how prompts and replies are written: compact or "
                 "json (default: json)", setting="synthesize.prompt_format", panel="",
                 complete=flags.one_of("compact", "json")),
    flags.Option("reasons", bool | None,
                 flags.declare("--reasons/--no-reasons", panel="",
                               help="whether replies give a reason first (default: only in json)"),
                 "synthesize.reasons"),
    flags.option("agent", str, "NAME", f"who acts and writes: {_ROLE}", panel=flags.WHO),
    flags.option("adversary", str, "NAME", f"who writes wrong replies: {_ROLE}", panel=flags.WHO),
    flags.option("critic", str, "NAME", f"who judges: none, or {_ROLE}", panel=flags.WHO),
    flags.option("model", str, "NAME", "the model of every role that is not named (default: "
                 "scripted)", "-m", panel=flags.WHO),
    flags.URL,
    flags.option("max_calls", int, "N", "maximum number of calls to models for this folder, in all "
                 "repetitions of the command (default: any number)",
                 setting="model.max_calls"),
    flags.option("max_tokens", int, "N", "maximum number of tokens of these calls (default: any "
                 "number)",
                 setting="model.max_tokens_total"),
    flags.option("parallel", int, "N", "number of walks at the same time (default: 1)", "-j",
                 panel=flags.HOW),
    flags.TASK,
    *flags.INVENTED,
    flags.option("data", str, "FILE", "recordings, or your copy of a data set (default: none)",
                 setting="environment.data"),
    flags.option("stray", float, "SHARE", "share of random actions in walks, so that they also "
                 "show the way back", setting="synthesize.stray", panel=""),
    flags.option("seed", int, "N", "equal seeds give equal walks", setting="environment.seed"),
    flags.CONFIG,
    flags.SET,
    flags.JSON,
    flags.QUIET,
)  # fmt: skip
def synthesize(arguments: flags.Arguments) -> int:
    """Make a corpus for stage 1 from walks (exploratory episodes) in an environment.

    Test splits of the environment are held out. Repeat the command to continue an interrupted
    synthesis, or with more walks to extend the corpus.

    Example: [bold]swarm-ui synthesize phone --prompt-format compact -n 200 -o corpus[/]
    """
    output, out = arguments.output, arguments["out"]
    if out is None:
        raise ConfigError("name the folder of the corpus with --out FOLDER")
    return _make(_work(arguments), out, output)


def _work(arguments: flags.Arguments) -> Synthesis:
    """The synthesis that the arguments describe. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.optim.stage1 import CorpusConfig

    draft = arguments.draft("environment", "model", "synthesize")
    if arguments["levels"] is not None:
        draft.put(("synthesize", "levels"), _levels(arguments["levels"]), "--levels")
    roles = {role: arguments[role] or arguments["model"] or SCRIPTED for role in ROLES}
    if typed(draft, ("model", "name")):
        draft.found(("model", "name"), "name the model with --model, --agent, …")
    if set(roles.values()) <= {SCRIPTED, NONE}:
        for name in ("url", "max_calls", "max_tokens_total"):
            if typed(draft, ("model", name)):
                draft.found(("model", name), "no role asks a model; name one with --model")
    config = checked(draft, stage1={"synthesize": CorpusConfig})
    given = dict(config.synthesize)
    given.setdefault("seed", config.environment.seed)
    # Models that are trained on short prompts learn short replies.
    given.setdefault("reasons", given.get("prompt_format", "json") == "json")
    return Synthesis(
        place=config.environment,
        config=msgspec.convert(given, CorpusConfig),
        roles=roles,
        model=config.model,
        walks=arguments["walks"],
        parallel=arguments["parallel"] or 1,
    )


def _levels(text: str) -> list[int]:
    try:
        return [int(level) for level in text.split(",")]
    except ValueError:
        raise ConfigError(f"--levels {text}: expected numbers such as 1,2,3") from None


def _make(work: Synthesis, out: Path, output: Output) -> int:
    resume = f"the same command (finished walks in {out} are kept)"
    try:
        with output.progress.bar(
            f"walks in {work.place.name}", work.walks or 0, share=False, together=work.parallel
        ) as bar:
            totals = asyncio.run(make_corpus(work, out, bar))
    except (KeyboardInterrupt, BudgetExceeded) as error:
        raise Stopped(out, resume, error) from error
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
