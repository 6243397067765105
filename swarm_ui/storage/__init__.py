"""Stores: runs in them survive a crash and can be continued.

    with DirectoryStore("runs") as store:
        trace = await team.run(screen, run_id="tuesday/7", store=store)

:class:`DirectoryStore` has one readable file a run; :class:`SQLiteStore` has any number of runs in
one file. They mean the same.

Each call is written when it has finished, and its successors start only after that. Started again
under its name, a run takes what was written, word for word, and makes the other calls: those that
were under way when it was stopped, even if an answer had come that was not written yet. A failed
call that left a tombstone is a call that was made. What is not written stays the caller's: the same
nodes, models and prompts must be there again; only names, edges, seed and screen are compared.
"""

from __future__ import annotations

from swarm_ui.storage.directory_store import DirectoryStore
from swarm_ui.storage.sqlite_store import SQLiteStore

__all__ = ["DirectoryStore", "SQLiteStore"]
