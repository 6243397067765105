"""Files: the journal of runs of graphs, folders of runs, locks and writes that survive a kill."""

from swarm_ui.storage.journal import Journal

__all__ = ["Journal"]
