"""Records of decisions and episodes, and their files."""

from swarm_ui.trace.records import TRACE_VERSION, Call, EdgeName, Episode, StepRecord, Trace, hear

__all__ = ["TRACE_VERSION", "Call", "EdgeName", "Episode", "StepRecord", "Trace", "hear"]
