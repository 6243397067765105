"""Pictures of traces: every call, what it came to, and who heard whom."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
from graph_fakes import SCREEN, HashModel, Sleeper
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_reading import HOSTILE, Picture, opens, recorded

from swarm_ui import Call, CollabGraph, Message, NodeContext, RunFailed, Trace, Usage
from swarm_ui.errors import Failure
from swarm_ui.model import Generation
from swarm_ui.nodes import MajorityVote, function_node
from swarm_ui.viz import trace_svg
from swarm_ui.viz.svg import RED

FULL = [(f"agent_{a}", f"agent_{b}") for a in range(4) for b in range(a + 1, 4)]


def team(agents: int = 4, rounds: int = 3, **options: object) -> CollabGraph:
    return CollabGraph.collaborative(agents, rounds, model=HashModel(), **options)  # type: ignore[arg-type]


def never(message: Message) -> bool:
    return False


def failed(text: str) -> Failure:
    return Failure(kind="model", message=text)


def call(id: str, *heard: str, **fields: object) -> Call:
    made = {name: fields.pop(name) for name in Generation.__struct_fields__ if name in fields}
    completion = Generation(**({"prompt": "p"} | made)) if made else None  # type: ignore[arg-type]
    return Call(message=said(id), completion=completion, heard=heard, **fields)  # type: ignore[arg-type]


def said(id: str, content: str = "", **fields: object) -> Message:
    name, _, round = id.rpartition(":")
    return Message(id=id, sender=name, round=int(round), content=content, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("scope", ["last", "all"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_every_call_and_every_message_heard_is_there(rounds: int, scope: str) -> None:
    trace = team(4, rounds, edges=FULL, vote_scope=scope).run_sync(SCREEN)
    picture = Picture(trace._repr_svg_())
    for made in trace.calls:
        name, _, round = made.id.rpartition(":")
        assert any(title.startswith(f"{name}, round {int(round) + 1}") for title in picture.titles)
        for heard in made.heard:
            own = heard.rpartition(":")[0] == name
            arrow = picture.arrow(f"{made.id} heard {heard}")
            assert (arrow.get("stroke-dasharray") is not None) == own
    assert len(picture.arrows) == sum(len(made.heard) for made in trace.calls)
    assert sum(text.startswith("round ") for text in picture.texts) == (rounds if rounds > 1 else 0)
    assert f"goal: {SCREEN.goal}" in picture.texts
    assert f"decision: {trace.action}" in picture.texts
    assert picture.inside()


def test_a_call_shows_proposal_confidence_tokens_time_and_the_whole_message() -> None:
    words = "The clock is what we need. " * 12
    spoken = said("agent:0", words, action=opens("Clock"))
    usage = Usage(prompt_tokens=321, completion_tokens=18)
    made = call("agent:0", logprob=-0.5, usage=usage, started=0.25, ended=0.75)
    picture = Picture(trace_svg(recorded([(made, spoken)], ("agent",))))
    assert {"agent", "open_app Clock", "p 0.61 · 321+18 tok · 500 ms"} <= set(picture.texts)
    (told,) = [title for title in picture.titles if title.startswith("agent, round 1")]
    assert words in told and opens("Clock").json() in told


def routed() -> Trace:
    @function_node
    def router(inbox: Sequence[Message], context: NodeContext) -> str:
        return "go"

    broken = ValueError("out of <order>")
    nodes = [router, Sleeper("web"), Sleeper("phone", fails=broken)]
    graph = CollabGraph(
        [*nodes, Sleeper("mail"), Sleeper("end")],
        [("router", "web"), ("router", "phone"), ("web", "end"), ("phone", "end"), ("mail", "end")],
    )
    graph = graph.with_edge("router", "mail", when=never)
    return graph.run_sync("x")


def test_failed_and_skipped_calls_are_marked() -> None:
    trace = routed()
    assert trace.skipped == ("mail:0",)
    picture = Picture(trace._repr_svg_())
    assert picture.box("phone, round 1").get("stroke") == RED
    assert any(
        title.startswith("phone, round 1\nfailed: ValueError: out of <order>")
        for title in picture.titles
    )
    assert picture.box("mail, round 1").get("stroke-dasharray")
    assert {"failed", "skipped"} <= set(picture.texts)
    assert picture.arrow("end:0 heard phone:0, a failure").get("stroke") == RED
    assert picture.arrow("end:0 heard web:0").get("stroke") is None
    assert "nothing travelled from router:0 to mail:0" in picture.titles
    assert any("1 failed · 1 skipped" in text for text in picture.texts)


def test_hostile_goals_names_messages_and_errors_are_words() -> None:
    calls = [
        (call(f"{word}:0", error=failed(word), adapter=word), said(f"{word}:0", word, error=word))
        for word in HOSTILE
    ]
    calls.append(
        (
            call("vote:0", *(f"{word}:0" for word in HOSTILE), ballot=dict.fromkeys(HOSTILE, 1.0)),
            said("vote:0", HOSTILE[0], action=opens(HOSTILE[1])),
        )
    )
    for word in HOSTILE:
        trace = recorded(calls, HOSTILE, goal=word)
        trace = msgspec.structs.replace(trace, run=word, action=opens(word))
        assert Picture(trace._repr_svg_()).harmless


def test_the_size_of_a_picture_is_bounded() -> None:
    long = "<&> " * 5000
    few = [
        (call(f"a{k}:0", error=failed(long)), said(f"a{k}:0", long, error=long)) for k in range(40)
    ]
    assert len(trace_svg(recorded(few, ()))) < 1_500_000
    ids = [f"a{k}:{r}" for r in range(3) for k in range(500)]
    many = [(call(id, *ids[:200]), said(id, "Some words. " * 500)) for id in ids]
    trace = recorded(many, tuple(f"a{k}" for k in range(500)), rounds=3)
    svg = trace_svg(trace)
    assert len(svg) < 8_000
    assert any("1,500 calls, too many to draw" in text for text in Picture(svg).texts)


IDS = [f"{path}{name}:{r}" for path in ("", "t:0/") for name in "abc" for r in range(3)]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_a_file_says_there_is_a_picture_of_it(data: st.DataObject) -> None:
    made = data.draw(st.lists(st.sampled_from(IDS), unique=True))
    heard = st.lists(st.sampled_from([*IDS, "nobody:7"]), max_size=4, unique=True)
    weights = st.dictionaries(
        st.sampled_from([opens("a").json(), "not json", json.dumps({"action_type": "fly"})]),
        st.floats(),
    )
    calls = []
    for id in made:
        ballot = data.draw(st.none() | weights)
        error = data.draw(st.none() | st.text(max_size=5))
        one = call(
            id,
            *data.draw(heard),
            ballot=ballot,
            error=error and failed(error),
            logprob=data.draw(st.none() | st.floats(max_value=0)),
        )
        calls.append((one, said(id, data.draw(st.text(max_size=9)))))
    skipped = data.draw(st.lists(st.sampled_from([*IDS, "strange"]), unique=True))
    agents = tuple(data.draw(st.lists(st.sampled_from("abc"), unique=True)))
    trace = recorded(calls, agents, 3, tuple(skipped))
    picture = Picture(trace_svg(trace))
    drawn = sum(", round " in title.splitlines()[0] for title in picture.titles if title)
    assert drawn == len({*made, *skipped})


def test_no_decision_is_said_and_a_plain_answer_is_an_answer() -> None:
    with pytest.raises(RunFailed) as failed:
        CollabGraph(
            [Sleeper("a", fails=ValueError("no")), MajorityVote()], [("a", "vote")]
        ).run_sync("x")
    nothing = failed.value.partial
    assert isinstance(nothing, Trace)
    assert nothing.undecided in Picture(nothing._repr_svg_()).texts
    answer = CollabGraph([Sleeper("a")]).run_sync("x")
    assert "answer: a()" in Picture(answer._repr_svg_()).texts
