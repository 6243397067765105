"""``swarm-ui synthesize``: makes a corpus for stage 1."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.cli import flags
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment.benchmarks import ENVIRONMENTS, SOURCES
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.model_settings import model_named
from swarm_ui.experiment.synthesis import NONE, ROLES, SCRIPTED, Synthesis, make_corpus

_ROLE = "scripted, or a model as for --model (default: that of --model, or scripted)"


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
    flags.option("agent", str, "NAME", f"who acts and writes: {_ROLE}", panel=flags.WHO),
    flags.option("adversary", str, "NAME", f"who writes wrong replies: {_ROLE}", panel=flags.WHO),
    flags.option("critic", str, "NAME", f"who judges: none, or {_ROLE}", panel=flags.WHO),
    flags.option("model", str, "NAME", "the model of every role that is not named (default: "
                 "scripted)", "-m", panel=flags.WHO),
    flags.option("url", str, "URL", "endpoint of these models, up to /v1", panel=flags.WHO),
    flags.option("max_calls", int, "N", "maximum number of calls to models for this folder, in all "
                 "repetitions of the command (default: any number)", least=1),
    flags.option("max_tokens", int, "N", "maximum number of tokens of these calls (default: any "
                 "number)", least=1),
    flags.option("parallel", int, "N", "number of walks at the same time (default: 1)", "-j",
                 least=1),
    flags.option("seed", int, "N", "equal seeds give equal walks (default: 0)",
                 setting="synthesize.seed", panel=""),
    flags.CONFIG,
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
    if not arguments.words:
        raise ConfigError("name an environment, such as phone, or a source of demonstrations")
    return _make(_work(arguments), out, output)


def _work(arguments: flags.Arguments) -> Synthesis:
    """The synthesis that the arguments describe. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.optim.stage1 import CorpusConfig

    config = load(arguments["config"], arguments.in_environment())
    given = dict(config.synthesize)
    # Models that are trained on short prompts learn short replies.
    given.setdefault("reasons", given.get("prompt_format", "json") == "json")
    roles = {role: _role(role, arguments) for role in ROLES}
    limits = arguments.given("url", "max_calls", "max_tokens")
    if limits and all(isinstance(r, str) or r is None for r in roles.values()):
        raise ConfigError(f"{limits[0]}: no role asks a model; name one with --model")
    return Synthesis(
        env=config.env,
        config=msgspec.convert(given, CorpusConfig),
        roles=roles,
        budget=Budget(arguments["max_calls"], arguments["max_tokens"]),
        walks=arguments["walks"],
        parallel=arguments["parallel"] or 1,
    )


def _role(role: str, arguments: flags.Arguments) -> Any:
    """Who plays a role: ``"scripted"``, ``None`` or a model."""
    name = arguments[role] or arguments["model"] or SCRIPTED
    if name == NONE and role != "critic":
        raise ConfigError(f"--{role} none: only the critic can be left out")
    if name in (SCRIPTED, NONE):
        return SCRIPTED if name == SCRIPTED else None
    return model_named(name, url=arguments["url"])


def _make(work: Synthesis, out: Path, output: Output) -> int:
    resume = f"the same command (finished walks in {out} are kept)"
    try:
        with output.progress.bar(
            f"walks in {work.env.name}", work.walks or 0, share=False, together=work.parallel
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
