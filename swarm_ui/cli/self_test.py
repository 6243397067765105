"""Quick attacks on this installation: ``swarm-ui doctor --self-test``.

Each check simulates a hostile model, page, server or folder in a temporary folder. The complete
suite is in ``tests/adversarial`` of the repository.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from swarm_ui.action import Action, parse_action
from swarm_ui.addresses import without_credentials
from swarm_ui.environment import Step
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError, EnvironmentFault, TraceError
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.run import expect_trust
from swarm_ui.experiment.terminal import SafeConsole
from swarm_ui.files import whole_lines
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.report import ArmResult, Results, write_report
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.storage.run_directory import without_secrets
from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Episode

HOSTILE_REPLIES = (
    "", "{" * 2_000, '{"action_type":"click","index":' + "9" * 5_000 + "}", " " * 20_000,
    '{"action_type":"click","x":1e400,"y":1}', '{"action_type":"answer","text":"\\ud83d"}',
    "Action: " + '{"action_type":"input_text","text":"' + "x" * 60_000 + '"}',
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """The result of one check."""

    name: str
    problem: str
    """What went wrong; empty: the attack had no effect."""


def self_test() -> Iterator[Attack]:
    """Run the checks, one after the other; nothing outside a temporary folder is written."""
    for name, check in _CHECKS.items():
        with tempfile.TemporaryDirectory(prefix="swarm-ui-") as folder:
            try:
                problem = check(Path(folder))
            except Exception as error:  # whatever it raises is the finding
                problem = f"{type(error).__name__}: {error}"
        yield Attack(name=name, problem=problem)


def _terminal(folder: Path) -> str:
    attack, written = "\x1b]0;owned\x07\x9b31m\r\x7f\u202e", io.StringIO()
    with redirect_stdout(written):
        SafeConsole().print(attack)
    left = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", written.getvalue())
    return f"printed {left!r}" if left else ""


def _stranger(folder: Path) -> str:
    config = load(overrides=["model.name=swarm_ui_self_test_module:model"])
    try:
        expect_trust(folder, config)
    except ConfigError:
        return ""
    return "a folder's settings would import a module without --trust"


def _configurations(folder: Path) -> str:
    path = folder / "a.toml"
    for text in ("x = " + "[" * 50_000, f"[team]\nseed = {'9' * 5_000}", "[team]\nseed = inf",
                 "[train." + ".".join("a" * 500) + "]"):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        try:
            load(path)
        except ConfigError:
            continue
        return f"accepted {text[:40]!r}…"
    return ""


def _replies(folder: Path) -> str:
    """Check that all replies are parsed or refused, and count as failures of the agent."""
    for reply in HOSTILE_REPLIES:
        parse_action(reply)
    model = ScriptedModel(lambda request: "I cannot do that.")
    episodes = _play(PhoneEnvironment, model)
    wrong = [e for e in episodes if e.success is not False or e.fault is not None]
    return f"masked {len(wrong)} episodes that the model failed" if wrong else ""


def _faults(folder: Path) -> str:
    """Check that a fault of the environment masks the episode."""

    class Broken(PhoneEnvironment):
        async def step(self, action: Action) -> Step:
            raise EnvironmentFault("self test")

    episodes = _play(Broken, ScriptedModel(lambda request: '{"action_type":"wait"}'))
    wrong = [e for e in episodes if e.success is not None]
    return f"scored {len(wrong)} episodes that the environment broke" if wrong else ""


def _play(world: Callable[[], PhoneEnvironment], model: ScriptedModel) -> list[Episode]:
    policy, jobs = GraphPolicy(CollabGraph.solo(model)), [("contacts-add", seed) for seed in (1, 2)]
    return asyncio.run(rollout_many(world, policy, jobs, max_steps=2))


def _traces(folder: Path) -> str:
    path = folder / "episodes.jsonl"
    for text in (
        "[" * 50_000,
        '{"version":1,"episode":',
        "\0" * 100,
        f'{{"version":{"9" * 5_000}}}',
    ):
        path.write_text(text + "\n", encoding="utf-8")
        try:
            read_jsonl(path)
        except TraceError:
            continue
        return f"read {text[:30]!r}… as a trace"
    return ""


def _report(folder: Path) -> str:
    attack = "</title><script>owned()</script><img src=x onerror=owned()>"
    arm = ArmResult(split=attack, label=attack, jobs=((attack, 1),), outcomes=(0.0,))
    Results(arms=[arm], labels=(attack,)).save(folder)
    text = write_report(folder).read_text(encoding="utf-8")
    found = [part for part in ("<script>owned", "<img src=x") if part in text]
    return f"the report holds {found[0]}" if found else ""


def _secrets(folder: Path) -> str:
    shown = json.dumps(without_secrets({"api_key": "sk-secret", "url": "http://me:sk-secret@h/v1"}))
    shown += without_credentials("http://me:sk-secret@host/v1")
    return "a key is shown" if "sk-secret" in shown else ""


def _kill(folder: Path) -> str:
    """Check that a process that is killed while it writes leaves a readable file."""
    path = folder / "lines.jsonl"
    code = "import sys\nfrom pathlib import Path\n"
    code += "from swarm_ui.files import append_line\n"
    code += (
        "while True:\n    append_line(Path(sys.argv[1]), b'{\"x\": \"' + b'y' * 5000 + b'\"}')\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        while writer.poll() is None and not (path.exists() and path.stat().st_size > 20_000):
            pass
    finally:
        writer.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        writer.wait()
    lines = [json.loads(line) for line in whole_lines(path)] if path.exists() else []
    return "" if lines else "nothing was left of what was written"


_CHECKS: dict[str, Callable[[Path], str]] = {
    "terminal escapes are not printed": _terminal,
    "a stranger's folder imports no code": _stranger,
    "absurd configurations are refused": _configurations,
    "a model's failures count": _replies,
    "environment faults mask the episode": _faults,
    "damaged traces are refused": _traces,
    "reports escape what they show": _report,
    "keys and passwords are not shown": _secrets,
    "a killed writer leaves whole lines": _kill,
}
