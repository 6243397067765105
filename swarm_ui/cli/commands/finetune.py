"""``swarm-ui finetune``: trains a language model on a corpus of stage 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import Stopped
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.finetuning import finetune_model, leads
from swarm_ui.experiment.loading import load

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import FinetuneConfig


@flags.command(
    flags.words("MODEL CORPUS... OUT [SETTING=VALUE...]", f"{flags.LANGUAGE_MODEL}; folders of "
                "corpora of one format; folder to write, where an interrupted fine-tuning "
                "continues; settings as finetune.rank=8", flags.one_of()),
    flags.option("adapters", str, "FOLDER", "adapter to start from: its folder, or smollm2-phone "
                 "(default: a new one)", panel=""),
    flags.CONFIG,
    flags.JSON,
    flags.QUIET,
)  # fmt: skip
def finetune(arguments: flags.Arguments) -> int:
    """Train a language model on a corpus: SFT on each level in order, then DPO on level 3.

    OUT/final holds the adapter (or with finetune.method=full the model), and the prompt format
    it was trained with. Repeat the command to continue after an interruption. Every field of the
    class FinetuneConfig is a setting in the section \\[finetune]; see docs/training.md.

    Example: [bold]swarm-ui finetune smollm2 corpus base-agent finetune.epochs=0.5[/]
    """
    output = arguments.output if leads() else Output(quiet=True)
    config = _config(arguments)
    if len(arguments.words) < 3:
        raise ConfigError("name a model, at least one corpus, and the folder to write")
    model, out = arguments.words[0], Path(arguments.words[-1])
    corpus = [Path(word) for word in arguments.words[1:-1]]
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
        made.add_row(at.stage, str(at.samples), str(at.skipped),
                     str(at.steps), f"{at.loss:.3f}", f"{at.seconds / 60:.1f}")  # fmt: skip
    output.show(made)
    _tell_skipped(sum(at.skipped for at in results), config, output)
    final = out / "final"
    tuned = [model, "--adapters", str(final)] if config.method == "lora" else [str(final)]
    output.command("next", "swarm-ui", "eval", "phone", "--model", *tuned)
    return output.done(final=str(final), stages=msgspec.to_builtins(results))


def _config(arguments: flags.Arguments) -> FinetuneConfig:
    """The settings of ``[finetune]``. Raises ``ConfigError`` for all mistakes."""
    from swarm_ui.optim.stage1 import FinetuneConfig

    config = load(arguments["config"], arguments.overrides)
    return msgspec.convert(config.finetune, FinetuneConfig)


def _tell_skipped(count: int, config: FinetuneConfig, output: Output) -> None:
    if count:
        output.warn(f"{count} samples have more than {config.max_length} tokens and were left out")
