"""A graph of the user, named as ``module:name``."""

from __future__ import annotations

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.user_code import made_by, named_in_code
from swarm_ui.graph.graph import CollabGraph


def graph_named(place: str) -> CollabGraph:
    """The graph ``module:name``, or the one that this function returns without arguments.

    The module is imported, so pass only a name that the user gave.

    Raises:
        ConfigError: it cannot be imported, or is not a graph.
    """
    found = named_in_code(place)
    if not isinstance(found, CollabGraph):
        found = made_by(place)
    if not isinstance(found, CollabGraph):
        raise ConfigError(
            f"'{place}' is a {type(found).__name__}; expected a CollabGraph, or a function that "
            "returns one"
        )
    return found
