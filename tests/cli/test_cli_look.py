"""``view``, ``replay``, ``export``, ``doctor``, ``synthesize``: what they find and say."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import webbrowser

import pytest
from cli_world import LAMP, WRONG, Shell
from loopback import Loopback

from swarm_ui.cli.doctor import checks
from swarm_ui.model import Request
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.trace.jsonl import read_jsonl


def follower() -> ScriptedModel:
    """Says what it hears; unprompted, "on"."""

    def reply(request: Request) -> str:
        decision = request.decision
        assert decision is not None
        said = [heard.content for heard in decision.heard if not heard.own]
        return said[-1] if said else 'Action: {"action_type": "click", "target": "on", "index": 0}'

    return ScriptedModel(reply, name="follower")


TEAM = f"eval {LAMP} light --model test_cli_look:follower -a 2 -r 1 --edges chain --out r"


def test_view_writes_a_report_where_there_is_none(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(shown.append(address)) or True)
    shell(f"{TEAM} run.report=false")
    report = shell.folder / "r/report.html"
    assert not report.exists()
    assert shell("view r").code == 0 and shown == [report.as_uri()]
    assert "follower, 2 agents x 1" in report.read_text(encoding="utf-8")
    done = shell("view r --no-open --json")
    assert done.json["report"] == "r/report.html" and len(shown) == 1
    alone = shell("view r/traces/episodes.jsonl --no-open --json")
    assert (shell.folder / alone.json["report"]).stat().st_size > 1000


def test_a_replay_without_a_change_asks_nothing(shell: Shell) -> None:
    shell(TEAM)
    done = shell("replay r --json")
    assert done.json["same"] is True and done.json["asked"] == 0
    assert all(row["before"] == row["after"] for row in done.json["messages"])


def test_a_changed_message_reaches_those_who_hear_it(shell: Shell) -> None:
    shell(TEAM)
    done = shell("replay r --trust --json --out new.jsonl --say", f"agent_0:0={WRONG}")
    rows = {row["id"]: row for row in done.json["messages"]}
    assert done.json["asked"] == 1 and done.json["same"] is False
    assert "off" in rows["agent_0:0"]["after"] and "off" in rows["agent_1:0"]["after"]
    (episode,) = read_jsonl(shell.folder / "new.jsonl")
    trace = episode.steps[0].trace
    assert trace.action is not None and trace.action.index == 1
    cut = shell("replay r --trust --json --cut agent_0>agent_1 --say", f"agent_0:0={WRONG}")
    rows = {row["id"]: row for row in cut.json["messages"]}
    assert "off" in rows["agent_0:0"]["after"] and "on" in rows["agent_1:0"]["after"]


def test_another_model_answers_in_a_replay(shell: Shell) -> None:
    shell(TEAM)
    done = shell("replay r --model script:wrong.txt --json")
    assert done.json["asked"] == 2 and "off" in done.json["after"]
    shown = shell("replay r --model script:wrong.txt")
    assert "the decision is different; 2 of 3 calls were made again" in shown.out


def test_replay_and_export_say_what_there_is_not(shell: Shell) -> None:
    shell(TEAM)
    for line, said in (
        ("replay r -e 9", "has 1 episodes, so there is no episode 9"),
        ("replay r -s 9", "has 1 steps, so there is no step 9"),
        ("replay r --trust --cut agent_1>agent_0", "there is no such edge"),
        ("replay r --say nonsense", "expected ID=TEXT"),
        ("replay r --trust --say nobody:0=x", "it has agent_0:0, agent_1:0"),
        ("replay r team.agents=3", "made by 2 agents in 1 rounds"),
        ("replay r timber.agents=4", "timber"),
        ("replay r --out right.txt", "'right.txt' exists"),
        ("export r episodes -o right.txt", "--force"),
        ("export r adapters -o a", "has no adapters"),
        ("export r pairs", "has no pairs"),
    ):
        done = shell(line)
        assert done.code == 2 and said in " ".join(done.err.split()), (line, done.err)


def test_a_file_that_cannot_be_written_is_a_mistake_and_new_folders_are_made(shell: Shell) -> None:
    shell(TEAM)
    for line in ("replay r", "export r episodes", "view r --no-open"):
        done = shell(f"{line} --out right.txt/x")
        assert done.code == 2 and done.err.count("\n") == 1, (line, done.err)
        assert "right.txt/x" in done.err
        assert shell(f"{line} --out new/{line.split()[0]}").code == 0


def test_doctor_says_what_is_missing_and_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWARM_UI_BROWSER", "no-such-browser")
    done = shell("doctor --json")
    browser = next(c for c in done.json["checks"] if c["name"] == "browser")
    assert browser["state"] == "absent" and "no-such-browser" in browser["do"]
    assert done.code == 0
    needed = shell("doctor --need web --json")
    assert needed.code == 1 and "browser" in needed.json["missing"]
    assert "no area 'foo'" in shell("doctor --need foo").err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("swarm-ui eval phone contacts-a", {"contacts-add", "contacts-add-email"}),
        ("swarm-ui export r e", {"episodes"}),
    ],
)
def test_completion_knows_values(line: str, words: set[str]) -> None:
    typed = line.split()
    place = len(typed) - (not line.endswith(" "))
    asked = {"_SWARM_UI_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(place)}
    # Typing must not wait for packages that only some commands need.
    code = (
        "import runpy, sys\n"
        "try: runpy.run_module('swarm_ui', run_name='__main__')\n"
        "finally: print({'numpy', 'openai', 'torch'} & {*sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert set(done.stdout.split()) == words and done.stderr == "set()\n", done.stderr


async def test_doctor_asks_the_endpoint_and_never_shows_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    def endpoint(url: str, model: str | None) -> str:
        found = checks(url, model, frozenset())
        (check,) = [c for c in found if c.area == "endpoint"]
        return f"{check.state}: {check.found} {check.do}"

    async with Loopback() as server:
        told = await asyncio.to_thread(endpoint, server.url, None)
        wrong = await asyncio.to_thread(endpoint, server.url, "no-such-model")
    assert told.startswith("ok") and "key in OPENAI_API_KEY: set" in told
    assert wrong.startswith("missing") and "no-such-model" in wrong
    assert "very-secret" not in told + wrong
    assert (await asyncio.to_thread(endpoint, "http://127.0.0.1:9/v1", None)).startswith("missing")
