"""Fine-tuning of a model that is chosen by its name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.errors import MissingExtra
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import Bar
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder, model_folder

if TYPE_CHECKING:
    from swarm_ui.optim.finetuning import Progress, Result
    from swarm_ui.optim.stage1 import FinetuneConfig


def leads() -> bool:
    """Whether this process is the first one, or the only one, started by ``accelerate launch``."""
    return os.environ.get("RANK", "0") == "0"


def finetune_model(
    name: str,
    corpus: Sequence[Path],
    out: Path,
    config: FinetuneConfig,
    bar: Bar,
    *,
    adapter: str = "",
) -> list[Result]:
    """Fine-tune a model; see :func:`swarm_ui.optim.stage1.finetune`.

    Args:
        name: a folder, a pulled model, or a name on the Hugging Face Hub.
        corpus: folders with the same prompt format.
        out: folder to write.
        config: settings.
        bar: shows the share of the steps that are done, including those before an interruption.
        adapter: the adapter to start from: its folder, or its name in this package; empty: a new
            one.
    """
    quiet()
    from swarm_ui.nodes.models.transformers.adapter_files import read_adapter
    from swarm_ui.optim.stage1 import finetune

    def report(now: Progress) -> None:
        note = f"{now.stage}, step {now.step} of {now.steps}, loss {now.loss:.3f}"
        bar.update(now.done, note)

    folder = model_folder(name)
    shown = folder.name if os.path.isdir(name) else name  # no paths of this machine in the file
    start = None
    if adapter:
        start = adapter_folder(adapter)
        read_adapter(start)  # one clear error for a damaged or foreign file
    return finetune(
        folder, list(corpus), out, config=config, report=report, name=shown, adapter=start
    )


def quiet() -> None:
    """Hide progress bars and warnings of the libraries; this library has its own."""
    try:
        import datasets

        silence_transformers()
    except ImportError as error:
        raise MissingExtra("train", "fine-tuning", error.name or "datasets") from error
    datasets.disable_progress_bars()
    warnings.filterwarnings("ignore", module=r"(trl|peft|torch|accelerate)\..*")
