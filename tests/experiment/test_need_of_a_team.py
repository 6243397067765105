"""The demo's second table: where a team is needed, and what it costs."""

from __future__ import annotations

import io

from rich.console import Console

from swarm_ui.experiment.demo.demo_report import need_in_terminal
from swarm_ui.experiment.split_facts.need_of_a_team import need_of_a_team


async def test_without_talk_nothing_is_solved_and_needed_edges_cost_less_than_broadcast() -> None:
    silent, broadcast, needed = await need_of_a_team(each=1)
    assert silent.success.mean == 0.0
    assert broadcast.success.mean == needed.success.mean == 1.0
    assert silent.tokens < needed.tokens < broadcast.tokens / 2
    assert {row.success.n for row in (silent, broadcast, needed)} == {13}


async def test_the_table_says_that_the_agents_are_scripted_and_the_phone_simulated() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(need_in_terminal(await need_of_a_team(each=1)))
    printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "agents are scripted" in printed and "phone is simulated" in printed
