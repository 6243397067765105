"""Third parties' chatter, kept out of the output of commands."""

from __future__ import annotations

import warnings


def hush_transformers() -> None:
    """No bars for loading a tiny model, no notes on transformers' own future."""
    import transformers

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\..*")
