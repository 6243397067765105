"""``swarm-ui finetune``: trains a language model on a corpus of stage 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import checked
from swarm_ui.experiment.stage1.finetuning import finetune_model, leads

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import FinetuneConfig


@flags.command(
    flags.needed("model", str, "MODEL", flags.LANGUAGE_MODEL),
    flags.needed("corpus", list[Path], "CORPUS...",
                 "folder of a corpus, or several of the same format"),
    flags.needed("out", Path, "OUT", "folder to write; an interrupted fine-tuning in it continues"),
    flags.option("method", str, "NAME", "lora or full", setting="finetune.method", panel="",
                 complete=flags.one_of("lora", "full")),
    flags.option("layers", str, "N-N", "layers that get an adapter, such as 8-29 (default: all)",
                 panel=""),
    flags.option("adapters", str, "FOLDER", "adapter to start from: its folder, or smollm2-phone "
                 "(default: a new one)", panel=""),
    flags.option("minutes", float, "N", "stop after this time, for all stages together "
                 "(default: no limit)", setting="finetune.minutes", panel=""),
    flags.option("epochs", float, "N", "how often each sample is seen",
                 setting="finetune.epochs", panel=""),
    flags.option("learning_rate", float, "RATE", "learning rate of the supervised stages",
                 setting="finetune.learning_rate", panel=""),
    flags.CONFIG,
    flags.SET,
    flags.JSON,
    flags.QUIET,
)  # fmt: skip
def finetune(arguments: flags.Arguments) -> int:
    """Train a language model on a corpus: SFT on each level in order, then DPO on level 3.

    OUT/final holds the adapter (or with --method full the model), and the prompt format it was
    trained with. Repeat the command to continue after an interruption. Every field of the class
    FinetuneConfig is a setting in the section \\[finetune] of a TOML file; see docs/training.md.

    Example: [bold]swarm-ui finetune smollm2 corpus base-agent --minutes 60[/]
    """
    output = arguments.output if leads() else Output(quiet=True)
    config = _config(arguments)
    model, corpus, out = arguments["model"], arguments["corpus"], arguments["out"]
    try:
        with output.progress.bar("finetune", 1.0) as bar:
            adapter = arguments["adapters"] or ""
            results = finetune_model(model, corpus, out, config, bar, adapter=adapter)
    except KeyboardInterrupt as error:
        saved = "the same command (finished stages and checkpoints are kept)"
        raise Stopped(out, saved, error) from None
    if not leads():
        return exits.OK
    made = table(
        f"{model}, fine-tuned",
        ["stage", "samples", "too long", "steps", "mean loss", "minutes"],
    )
    for at in results:
        ended = " (time over)" if at.ran_out else ""
        made.add_row(at.stage, str(at.samples), str(at.skipped),
                     f"{at.steps}{ended}", f"{at.loss:.3f}", f"{at.seconds / 60:.1f}")  # fmt: skip
    output.show(made)
    _tell_skipped(sum(at.skipped for at in results), config, output)
    final = out / "final"
    tuned = [model, "--adapters", str(final)] if config.method == "lora" else [str(final)]
    output.command("next", "swarm-ui", "eval", "phone", "--model", *tuned)
    return output.done(final=str(final), stages=msgspec.to_builtins(results))


def _config(arguments: flags.Arguments) -> FinetuneConfig:
    """The settings of ``[finetune]``. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.optim.stage1 import FinetuneConfig

    draft = arguments.draft("finetune")
    if arguments["layers"] is not None:
        draft.put(("finetune", "layers"), _layers(arguments["layers"]), "--layers")
    config = checked(draft, stage1={"finetune": FinetuneConfig})
    return msgspec.convert(config.finetune, FinetuneConfig)


def _layers(text: str) -> list[int]:
    """The numbers of ``8-29`` or ``8,9,20-29``."""
    found: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            layers = range(int(first), int(last or first) + 1)
            if not layers:
                raise ValueError
            found += layers
    except ValueError:
        raise ConfigError(f"--layers {text}: expected numbers such as 8-29 or 0,1,5") from None
    return found


def _tell_skipped(count: int, config: FinetuneConfig, output: Output) -> None:
    if count:
        output.warn(f"{count} samples have more than {config.max_length} tokens and were left out")
