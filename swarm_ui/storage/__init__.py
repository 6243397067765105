"""Stores: runs in them survive a crash and can be continued.

    with DirectoryStore("runs") as store:
        trace = await team.run(screen, run_id="tuesday/7", store=store)

:class:`DirectoryStore` writes one readable file for each run; :class:`SQLiteStore` keeps any number
of runs in one file. Both behave in the same way.

Each call is written when it has finished, and its successors start only after that. A run
that is started again under its name reuses the written calls unchanged and makes the others. These
include calls that were in progress when it was stopped, even if an answer had arrived but was not
written yet. A failed call that left a tombstone is not repeated. The caller must provide the same
nodes, models and prompts again; only names, edges, seed and screen are compared.
"""

from __future__ import annotations

from swarm_ui.storage.directory_store import DirectoryStore
from swarm_ui.storage.sqlite_store import SQLiteStore

__all__ = ["DirectoryStore", "SQLiteStore"]
