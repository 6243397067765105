"""The paper's team, given by keywords or by one record."""

from __future__ import annotations

import dataclasses

import pytest

from swarm_ui import CollabGraph, TeamSpec
from swarm_ui.errors import GraphError
from swarm_ui.graph.team_spec import TeamOptions
from swarm_ui.nodes import ScriptedModel

MODEL = ScriptedModel(lambda request: "{}")


def test_keywords_and_a_record_make_the_same_team() -> None:
    options: TeamOptions = {"seed": 3, "density": 0.9, "views": "shuffle", "max_tokens": 9}
    by_keywords = CollabGraph.collaborative(3, 2, model=MODEL, **options)
    by_record = CollabGraph.collaborative(TeamSpec(agents=3, rounds=2, **options), model=MODEL)
    assert by_keywords.to_json() == by_record.to_json()
    assert by_record.rounds == 2 and len(by_record.agents) == 3


def test_the_options_are_the_fields_of_the_record() -> None:
    fields = {field.name for field in dataclasses.fields(TeamSpec)}
    assert set(TeamOptions.__annotations__) == fields - {"agents", "rounds"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'viewz'"):
        CollabGraph.collaborative(3, 2, model=MODEL, viewz="same")  # type: ignore[call-arg]


@pytest.mark.parametrize(("rounds", "options"), [(2, {}), (3, {"views": "shuffle"})])
def test_a_record_takes_no_options_beside_it(rounds: int, options: TeamOptions) -> None:
    with pytest.raises(GraphError, match="would not be used, because a TeamSpec is a complete"):
        CollabGraph.collaborative(TeamSpec(agents=3), rounds, model=MODEL, **options)
