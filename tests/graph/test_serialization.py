"""Graphs in other forms: JSON and networkx there and back, Mermaid, Graphviz, the picture."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import networkx
import pytest
from graph_fakes import HashModel, Sleeper
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import CollabGraph, GraphError, MajorityVote, Message, Node, random_dag

AWKWARD = [
    'say "hi"',
    "back\\",
    '\\"',
    "<b>&lt;",
    "#quot;",
    "`x`",
    "{a|b}",
    "ü 中",
    "end",
    "a;b",
    "\\N",
]


def is_code(message: Message) -> bool:
    return "code" in message.content


def is_text(message: Message) -> bool:
    return not is_code(message)


def says(word: str) -> Callable[[Message], bool]:
    def found(message: Message) -> bool:
        return word in message.content

    return found


def whole(graph: CollabGraph) -> tuple[object, ...]:
    """All that a graph is made of."""
    members, when, fallbacks = dict(graph.nodes), dict(graph.when), dict(graph.fallbacks)
    return members, graph.edges, when, fallbacks, graph.output, graph.rounds, graph.name


def routed() -> CollabGraph:
    router, coder, writer, other, end = map(Sleeper, ("router", "coder", "writer", "other", "end"))
    graph = CollabGraph([router], name="routed") >> [coder, writer, other] >> end
    graph = graph.with_route("router", {"coder": is_code, "writer": says("w")}, otherwise="other")
    return graph.with_fallback("coder", writer)


NAMES = st.sampled_from(AWKWARD) | st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=":/"),
    min_size=1,
    max_size=4,
)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 1) -> CollabGraph:
    """Any graph: awkward names, conditions, fallbacks, votes, graphs inside."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    rng = random.Random(draw(st.integers(0, 999)))
    members: dict[str, Node] = {name: Sleeper(name) for name in names}
    if depth and rng.random() < 0.5:
        members[names[0]] = draw(graphs(depth=depth - 1))
    edges = random_dag(names, 0.5, rng)
    if rng.random() < 0.5 and "vote" not in members:
        members["vote"] = MajorityVote()
    output = rng.choice(list(members))
    graph = CollabGraph(members, edges, output, rng.randint(1, 3), rng.choice(names))
    for sender, listener in graph.edges:
        if rng.random() < 0.2:
            graph = graph.with_route(sender, {listener: rng.choice([is_code, says("x"), callable])})
    for sender in names:
        listeners = [b for a, b in graph.edges if a == sender]
        if len(listeners) > 1 and rng.random() < 0.3:
            graph = graph.with_route(sender, {listeners[0]: says("y")}, otherwise=listeners[1])
    return graph.with_fallback(rng.choice(names), Sleeper("f")) if rng.random() < 0.5 else graph


# -- JSON -----------------------------------------------------------------------------------------


@given(graphs())
def test_json_there_and_back(graph: CollabGraph) -> None:
    text = graph.to_json()
    back = CollabGraph.from_json(text, graph.nodes, when=graph.when, fallbacks=graph.fallbacks)
    assert whole(back) == whole(graph) and back.to_json() == text


@given(graphs(depth=2))
def test_json_with_the_nodes_inside_nested_graphs_by_their_full_names(graph: CollabGraph) -> None:
    def all_of(inner: CollabGraph, path: str) -> None:
        for name, node in inner.nodes.items():
            if isinstance(node, CollabGraph):
                all_of(node, f"{path}{name}/")
            else:
                nodes[path + name] = node
        when.update({(path + a, path + b): found for (a, b), found in inner.when.items()})
        fallbacks.update({path + name: node for name, node in inner.fallbacks.items()})

    nodes: dict[str, Node] = {}
    when: dict[tuple[str, str], Callable[[Message], bool]] = {}
    fallbacks: dict[str, Node] = {}
    all_of(graph, "")
    back = CollabGraph.from_json(graph.to_json(), nodes, when=when, fallbacks=fallbacks)
    assert back.to_json() == graph.to_json()


def test_conditions_are_written_and_given_by_name() -> None:
    graph = routed()
    written = json.loads(graph.to_json())
    assert written["when"] == [
        {"edge": ["router", "coder"], "name": "is_code"},
        {"edge": ["router", "writer"], "name": "found"},
        {"edge": ["router", "other"], "name": "otherwise", "none_of": ["is_code", "found"]},
    ]
    assert written["fallbacks"] == [{"id": "coder", "kind": "Sleeper"}]
    given = {"is_code": is_code, "found": is_text}
    back = CollabGraph.from_json(
        graph.to_json(), graph.nodes, when=given, fallbacks=graph.fallbacks
    )
    assert back.when["router", "coder"] is is_code and back.when["router", "writer"] is is_text
    message = Message(id="router:0", sender="router", round=0, content="neither")
    assert back.run_sync("x").skipped == ("coder:0", "other:0")
    assert not back.when["router", "other"](message)  # is_text holds, so 'otherwise' does not


def test_functions_of_one_name_are_told_apart() -> None:
    a, b, c = says("a"), says("b"), says("c")
    graph = CollabGraph([Sleeper(n) for n in "wxyz"], [("x", "z"), ("y", "z")], output="z")
    graph = graph.with_route("w", {"x": a, "y": b, "z": a})
    names = [entry["name"] for entry in json.loads(graph.to_json())["when"]]
    assert names == ["found", "found#2", "found"]
    back = CollabGraph.from_json(graph.to_json(), graph.nodes, when={"found": a, "found#2": b})
    assert dict(back.when) == dict(graph.when)
    outer = CollabGraph(
        [graph.named("in"), Sleeper("end")], [("in", "end")], when={("in", "end"): c}
    )
    written = json.loads(outer.to_json())
    inside = written["nodes"][0]["inside"]
    assert [entry["name"] for entry in inside["when"]] == names
    assert written["when"][0]["name"] == "found#3"
    assert 'n0 -.->|"found#35;3"| n1' in outer.to_mermaid()


@pytest.mark.parametrize(
    ("leave_out", "words"),
    [
        ("is_code", r"edge router -> coder has the condition 'is_code'.*when=\{'is_code': ...\}"),
        ("found", "edge router -> writer has the condition 'found'"),
        ("coder", r"'coder' has a fallback, .*Sleeper\): pass it as fallbacks=\{'coder': ...\}"),
        ("end", "no node given for: end"),
    ],
)
def test_what_is_not_given_is_missed(leave_out: str, words: str) -> None:
    graph = routed()
    when = {"is_code": is_code, "found": is_text}
    fallbacks = dict(graph.fallbacks)
    nodes = {name: node for name, node in graph.nodes.items() if name != leave_out}
    if leave_out in graph.fallbacks:
        nodes, fallbacks = dict(graph.nodes), {}
    when.pop(leave_out, None)
    with pytest.raises(GraphError, match=words):
        CollabGraph.from_json(graph.to_json(), nodes, when=when, fallbacks=fallbacks)


def test_what_is_given_for_nothing_is_refused() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    with pytest.raises(GraphError, match="no condition for an edge a -> b"):
        CollabGraph.from_json(graph.to_json(), graph.nodes, when={("a", "b"): is_code})
    with pytest.raises(GraphError, match="the structure has no fallback for 'a'"):
        CollabGraph.from_json(graph.to_json(), graph.nodes, fallbacks={"a": Sleeper("x")})


OLD = (
    '{"version":1,"name":"team","nodes":[{"id":"inner","kind":"CollabGraph","inside":{"version":1,'
    '"name":"pair","nodes":[{"id":"a","kind":"Sleeper"},{"id":"b","kind":"Sleeper"}],'
    '"edges":[["a","b"]],"output":"b","rounds":2}},{"id":"judge","kind":"Sleeper"}],'
    '"edges":[["inner","judge"]],"output":"judge","rounds":1}'
)


def test_files_from_before_conditions_are_read() -> None:
    named = {"inner/a": Sleeper("a"), "inner/b": Sleeper("b"), "judge": Sleeper("judge")}
    graph = CollabGraph.from_json(OLD, named)
    inner = graph.nodes["inner"]
    assert isinstance(inner, CollabGraph) and (inner.name, inner.rounds) == ("pair", 2)
    assert graph.run_sync("x").message("inner:0/b:1").content == "inner/b(inner/b,inner/a)"
    given = CollabGraph.from_json(OLD, {"inner": inner, "judge": named["judge"]})
    assert given.to_json() == graph.to_json()
    with pytest.raises(GraphError, match=r"no node given for: inner/b; pass"):
        CollabGraph.from_json(OLD, {"inner/a": Sleeper("a"), "judge": Sleeper("judge")})
    with pytest.raises(GraphError, match=r"no node given for: inner, judge; pass"):
        CollabGraph.from_json(OLD, {})
    cyclic = OLD.replace('[["a","b"]]', '[["a","b"],["b","a"]]')
    with pytest.raises(GraphError, match="inside 'inner': the edges form a cycle"):
        CollabGraph.from_json(cyclic, named)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "not the structure of a graph"),
        ("[", "not the structure of a graph"),
        ('{"version":1,"name":"x"}', "not the structure of a graph.*nodes"),
        ('{"version":3,"anything":[]}', "version 3; this release reads 1 and 2"),
    ],
)
def test_what_is_no_structure(text: str, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        CollabGraph.from_json(text, {})


def test_a_written_team_names_the_kinds_of_its_nodes() -> None:
    team = CollabGraph.collaborative(model=HashModel(), rounds=2)
    outer = CollabGraph([team, Sleeper("judge")], [("team", "judge")])
    inside = json.loads(outer.to_json())["nodes"][0]["inside"]
    assert [n["kind"] for n in inside["nodes"]] == ["AgentNode"] * 4 + ["MajorityVote"]


# -- networkx -------------------------------------------------------------------------------------


@given(graphs())
def test_networkx_there_and_back(graph: CollabGraph) -> None:
    digraph = graph.to_networkx()
    assert set(digraph.edges) == set(graph.edges)
    assert whole(CollabGraph.from_networkx(digraph)) == whole(graph)


def test_a_digraph_from_elsewhere() -> None:
    digraph = networkx.DiGraph([(1, 2), (2, 3)], name="http://x", rounds="many")
    digraph.edges[1, 2].update(weight=3, place="Paris")
    nodes = {str(k): Sleeper(str(k)) for k in (1, 2, 3)}
    graph = CollabGraph.from_networkx(digraph, nodes)
    assert (graph.output, graph.name, graph.rounds) == ("3", "team", 1)
    assert graph.edges == (("1", "2"), ("2", "3"))
    digraph.nodes[1].update(node=Sleeper("mine"), fallback=Sleeper("other"))
    digraph.edges[2, 3]["when"] = is_code
    graph = CollabGraph.from_networkx(
        digraph, {"2": nodes["2"], "3": nodes["3"]}, rounds=2, name="n"
    )
    assert graph.nodes["1"].id == "mine" and graph.fallbacks["1"].id == "other"
    assert graph.when == {("2", "3"): is_code} and (graph.rounds, graph.name) == (2, "n")


@pytest.mark.parametrize(
    ("digraph", "words"),
    [
        (networkx.DiGraph([(1, 2)]), "no node given for '2'"),
        (networkx.DiGraph([(1, "1")]), "labels 1 and '1' would both be called '1'"),
        (networkx.Graph([(1, 3)]), "undirected"),
        (networkx.DiGraph([(1, 3), (3, 1)]), "cycle: "),
        (networkx.MultiDiGraph([(1, 3), (1, 3)]), "edge 1 -> 3 is given twice"),
        (networkx.DiGraph([(1, 3, {"when": "monday"})]), "edge 1 -> 3: a condition is a function"),
        (networkx.DiGraph([(1, 3)], name="x", output="4", rounds=1), "output '4' is not in"),
        (networkx.DiGraph(), "at least one node"),
    ],
)
def test_digraphs_that_are_no_graphs(digraph: networkx.DiGraph, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        CollabGraph.from_networkx(digraph, {"1": Sleeper("1"), "3": Sleeper("3")})


def test_an_edge_added_in_networkx_comes_last() -> None:
    graph = CollabGraph([Sleeper(n) for n in "abc"], [("b", "c"), ("b", "a")], output="c")
    digraph = graph.to_networkx()
    digraph.add_edge("a", "c")
    assert CollabGraph.from_networkx(digraph).predecessors["c"] == ("b", "a")


# -- Mermaid and Graphviz -------------------------------------------------------------------------


def mermaid_label(text: str) -> str:
    """What Mermaid shows for a label."""
    assert not re.search(r"[\"<>`&|]", text) and not re.search(r"#(?!\d+;)", text)
    return re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text)


def count_nested(graph: CollabGraph) -> int:
    inside = [node for node in graph.nodes.values() if isinstance(node, CollabGraph)]
    return len(inside) + sum(map(count_nested, inside))


def count_nodes(graph: CollabGraph) -> int:
    inside = [node for node in graph.nodes.values() if isinstance(node, CollabGraph)]
    return len(graph.nodes) + sum(map(count_nodes, inside))


def all_edges(graph: CollabGraph, path: str = "") -> list[tuple[str, str, bool]]:
    found = [(path + a, path + b, (a, b) in graph.when) for a, b in graph.edges]
    for name, node in graph.nodes.items():
        if isinstance(node, CollabGraph):
            found += all_edges(node, f"{path}{name}/")
    return found


@given(graphs(depth=2))
def test_mermaid_shows_every_name_and_edge_as_it_is(graph: CollabGraph) -> None:
    lines = graph.to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    paths: dict[str, str] = {}
    around: list[str] = []
    edges: list[tuple[str, str, bool]] = []
    for line in map(str.strip, lines[1:]):
        if line == "end":
            around.pop()
        elif found := re.fullmatch(r'(subgraph )?(n[\d_]+)\(?\["(.*)"\]\)?', line):
            paths[found[2]] = "/".join([*around, mermaid_label(found[3])])
            if found[1]:
                around.append(mermaid_label(found[3]))
        elif found := re.fullmatch(r'(n[\d_]+) (-->|-\.->\|"(.+)"\|) (n[\d_]+)', line):
            edges.append((paths[found[1]], paths[found[4]], bool(found[3])))
        else:
            assert re.fullmatch(r"direction LR|style n[\d_]+ stroke-width:3px", line), line
    assert not around and len(paths) == count_nodes(graph)
    assert sorted(edges) == sorted(all_edges(graph))
    assert lines[-1] == f"    style n{list(graph.nodes).index(graph.output)} stroke-width:3px"


def test_a_mermaid_chart_of_routes() -> None:
    assert routed().to_mermaid() == (
        "flowchart LR\n"
        '    n0["router"]\n    n1["coder"]\n    n2["writer"]\n    n3["other"]\n    n4["end"]\n'
        '    n0 -.->|"is_code"| n1\n'
        '    n0 -.->|"found"| n2\n'
        '    n0 -.->|"otherwise"| n3\n'
        "    n1 --> n4\n    n2 --> n4\n    n3 --> n4\n"
        "    style n4 stroke-width:3px\n"
    )


TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|->|[{}\[\]=,]|[\w.]+|\s+', re.DOTALL)


def dot_tokens(text: str) -> list[tuple[bool, str]]:
    """(quoted, text) of each token; fails on anything that is none."""
    found: list[tuple[bool, str]] = []
    place = 0
    while place < len(text):
        token = TOKEN.match(text, place)
        assert token is not None, text[place : place + 40]
        if token[1] is not None:
            assert not re.search(r'\\[^\\"]', token[1].replace("\\\\", ""))
            found.append((True, re.sub(r"\\(.)", r"\1", token[1])))
        elif token[0].strip():
            found.append((False, token[0]))
        place = token.end()
    return found


@given(graphs(depth=2))
def test_graphviz_text_is_balanced_and_keeps_every_name_and_edge(graph: CollabGraph) -> None:
    tokens = dot_tokens(graph.to_graphviz())
    assert tokens[:2] == [(False, "digraph"), (True, graph.name)]
    depth = 0
    for place, (quoted, text) in enumerate(tokens):
        depth += (text == "{") - (text == "}") if not quoted else 0
        assert depth > 0 or place < 2 or place == len(tokens) - 1
    assert depth == 0
    plain = [text for quoted, text in tokens if not quoted]
    assert plain.count("subgraph") == count_nested(graph)
    edges = []
    for place, (quoted, text) in enumerate(tokens):
        if (quoted, text) == (False, "->"):
            told: dict[str, str] = {}
            at = place + 2
            while at < len(tokens) and tokens[at] in {(False, "["), (False, ",")}:
                told[tokens[at + 1][1]] = tokens[at + 3][1]
                at += 4
            tail = told.get("ltail", "cluster " + tokens[place - 1][1])
            head = told.get("lhead", "cluster " + tokens[place + 1][1])
            edges.append((tail[8:], head[8:], told.get("style") == "dashed"))
    assert sorted(edges) == sorted(all_edges(graph))


def test_a_graphviz_text_of_a_nested_graph() -> None:
    inner = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], name="in & out")
    graph = CollabGraph(
        [Sleeper("x"), inner, MajorityVote()], [("x", "in & out"), ("in & out", "vote")]
    )
    graph = graph.with_route("x", {"in & out": is_code})
    assert graph.to_graphviz() == (
        'digraph "team" {\n'
        "    rankdir=LR\n"
        "    compound=true\n"
        "    node [shape=box]\n"
        '    "x" [label="x"]\n'
        '    subgraph "cluster in & out" {\n'
        '        label="in &amp; out"\n'
        '        "in & out/a" [label="a"]\n'
        '        "in & out/b" [label="b", penwidth=3]\n'
        '        "in & out/a" -> "in & out/b"\n'
        "    }\n"
        '    "vote" [label="vote", style=rounded, penwidth=3]\n'
        '    "x" -> "in & out/a" [style=dashed, label="is_code", lhead="cluster in & out"]\n'
        '    "in & out/b" -> "vote" [ltail="cluster in & out"]\n'
        "}\n"
    )


# -- the picture ----------------------------------------------------------------------------------


def test_the_picture_shows_every_node_and_edge() -> None:
    edges = [("agent_0", "agent_1"), ("agent_0", "agent_2")]
    graph = CollabGraph.collaborative(model=HashModel(), rounds=2, edges=edges)
    picture = graph._repr_svg_()
    assert picture.count("<rect") == 5
    assert picture.count("marker-end") == len(graph.edges) == 6
    assert all(f">{name}</text>" in picture for name in graph.nodes)
    awkward = CollabGraph([Sleeper("<b>")])
    assert "&lt;b&gt;" in awkward._repr_html_() and "<b>" not in awkward._repr_html_()


# -- delays, until and routes by value ------------------------------------------------------------


def done(newest: object) -> bool:
    return True


def kind(message: Message) -> str:
    return message.content


def feedback(**more: Any) -> CollabGraph:
    nodes = [Sleeper(name) for name in ("plan", "web", "phone")]
    graph = CollabGraph(nodes, [("plan", "web"), ("plan", "phone")], "web", 3, until=done)
    graph = graph.with_route("plan", {"web": "page"}, by=kind, otherwise="phone")
    return graph.with_edge("phone", "plan", delay=1, **more)


def test_delays_until_and_routes_are_written_and_read() -> None:
    graph = feedback()
    structure = json.loads(graph.to_json())
    assert structure["version"] == 2 and structure["until"] == "done"
    assert structure["delays"] == [{"edge": ["phone", "plan"], "rounds": 1}]
    for when in ({"kind": kind, "done": done}, {**graph.when, "done": done}):
        again = CollabGraph.from_json(graph.to_json(), graph.nodes, when=when)
        assert again.to_json() == graph.to_json()
        assert (again.delays, again.until, again.when) == (graph.delays, done, graph.when)
    nested = CollabGraph([graph.named("inner")])
    assert json.loads(nested.to_json())["version"] == 2
    placed = {("inner/plan", "inner/web"): kind, "kind": kind, "done": done}
    inside = CollabGraph.from_json(
        nested.to_json(), {f"inner/{n}": graph.nodes[n] for n in graph.nodes}, when=placed
    )
    assert inside.to_json() == nested.to_json()
    with pytest.raises(GraphError, match="'done' ends the rounds of the graph: give the function"):
        CollabGraph.from_json(graph.to_json(), graph.nodes, when={"kind": kind})
    with pytest.raises(GraphError, match="plan -> web has the condition 'kind'"):
        CollabGraph.from_json(graph.to_json(), graph.nodes, when={"done": done})


def test_a_graph_without_news_is_written_as_before() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], rounds=2)
    assert list(json.loads(graph.to_json())) == [
        "version", "name", "nodes", "edges", "output", "rounds",
    ]  # fmt: skip
    assert json.loads(graph.to_json())["version"] == 1


def test_networkx_keeps_delays_and_until() -> None:
    graph = feedback()
    drawn = graph.to_networkx()
    assert drawn.edges["phone", "plan"]["delay"] == 1 and drawn.graph["until"] is done
    again = CollabGraph.from_networkx(drawn)
    assert (again.delays, again.until, again.when) == (graph.delays, done, graph.when)
    drawn.edges["phone", "plan"]["delay"] = 0.5
    with pytest.raises(GraphError, match=r"delay must be a whole number of rounds.*got 0\.5"):
        CollabGraph.from_networkx(drawn)


def test_diagrams_show_delays_and_routes() -> None:
    graph = feedback()
    mermaid, dot = graph.to_mermaid(), graph.to_graphviz()
    assert 'n2 -.->|"delay 1"| n0' in mermaid
    assert 'n0 -.->|"kind: page"| n1' in mermaid and '|"otherwise"| n2' in mermaid
    assert '"phone" -> "plan" [style=dashed, label="delay 1", constraint=false]' in dot
    assert "1 of them delayed" in repr(graph) and "at most 3 rounds, until 'done'" in repr(graph)
