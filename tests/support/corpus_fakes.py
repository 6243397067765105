"""What the tests of corpora share: a tiny Llama with a tokenizer, both made on the spot; models
that speak from the expert's mouth; jobs on the phone."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS, PhoneEnvironment, tasks
from swarm_ui.model import Completion, Request
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.stage1 import CorpusConfig, HeldOut, Models, Totals, synthesize

TRAIN = tasks("train")
HELD_OUT = HeldOut.of(
    tasks=[*tasks("new_templates"), *tasks("new_apps"), *tasks("validation")],
    seeds=[TEST_SEEDS, VALIDATION_SEEDS],
)
FEW = CorpusConfig(questions=3, instructions=3, screens=2)


def jobs(count: int, seed: int = 0) -> list[tuple[str, int]]:
    return PhoneEnvironment.training_jobs(count, seed=seed)


async def scripted_corpus(
    folder: Path, count: int = 4, config: CorpusConfig = FEW, **more: Any
) -> Totals:
    return await synthesize(
        PhoneEnvironment,
        Models.scripted(),
        jobs(count),
        folder,
        held_out=HELD_OUT,
        config=config,
        **more,
    )


def tiny_llama(
    folder: Path, *, template: str | None = None, width: int = 32, layers: int = 1
) -> Path:
    """A model of about 50,000 weights with a byte-level tokenizer trained on a few prompts."""
    from tiny_causal import made, save_model, sizes, trained
    from transformers import LlamaConfig, LlamaForCausalLM

    words = trained([turn for texts in _prompts() for turn in texts], 1500, template)
    heads = {"num_hidden_layers": layers, "num_attention_heads": 2}
    config = LlamaConfig(**{**sizes(len(words), 2048, width), **heads})
    return save_model(folder, made(lambda: LlamaForCausalLM(config), size=1.0), words)


def _prompts() -> Sequence[Sequence[str]]:
    """Words of prompts, so that a prompt is some hundreds of tokens and not thousands."""
    from swarm_ui.model import Decision
    from swarm_ui.observation import Observation
    from swarm_ui.prompts import decision_chat

    screen = Observation(goal="press Save", elements=())
    chat = decision_chat(Decision(observation=screen))
    return [[turn.content for turn in chat]] * 6


class Ventriloquist:
    """A language model that knows everything: it replies to prompts of the synthesis as well as
    the scripted roles do, and to some of them badly on purpose."""

    def __init__(self, *, name: str = "ventriloquist", bad: float = 0.0) -> None:
        self.model = ScriptedModel(self._reply, name=name)
        self._bad = bad
        self.calls = 0

    def _reply(self, request: Request) -> str | Completion:
        self.calls += 1
        assert request.chat is not None
        system, user = request.chat[0].content, request.chat[1].content
        rng = random.Random(f"{request.seed} {user}")
        if rng.random() < self._bad:
            return rng.choice(["", "I am sorry, I cannot help.", '{"question": 3}', "{" * 50])
        if "write questions and answers" in system:
            return _lines(_questions(user))
        if "write exercises" in system:
            return _lines(_instructions(user))
        if system.startswith(("You judge", "You check")):
            form = json.loads(user[user.rindex("{") :].replace("<score>", "1"))
            return "Rationale: fine.\n" + json.dumps({name: _verdict(user, name) for name in form})
        if system.startswith("You write wrong answers"):
            return "Reason: It looks finished.\nAction: " + json.dumps(
                {"action_type": "status", "goal_status": "complete"}
            )
        return _act(user)


def _lines(rows: Sequence[dict[str, object]]) -> str:
    return "Here you are:\n" + "\n".join(json.dumps(row) for row in rows)


def _elements(user: str) -> list[tuple[int, str, str]]:
    """Number, kind and label of what a prompt shows."""
    found = []
    for line in user[user.index("<screen>") :].splitlines():
        number, _, rest = line.partition(": ")
        if number.isdigit():
            role, _, label = rest.partition(' "')
            found.append((int(number), role, label.partition('"')[0]))
    return found


def _questions(user: str) -> list[dict[str, object]]:
    return [
        {"kind": "element", "question": f"What is {label}?", "answer": f"Element {k} is a {role}."}
        for k, role, label in _elements(user)
    ]


def _instructions(user: str) -> list[dict[str, object]]:
    return [
        {
            "instruction": f"Press {label}",
            "reason": f"{label} is there.",
            "action": {"action_type": "click", "index": k, "target": label},
        }
        for k, _, label in _elements(user)
    ]


def _verdict(user: str, name: str) -> float:
    at = user.index(f"{name}")
    said = user[at : user.index("</said>", at)]
    return 0.0 if "goal_status" in said else 1.0


def _act(user: str) -> str:
    goal = user[len("Goal: ") :].partition("\n")[0]
    word = goal.partition("“")[2].partition("”")[0]
    typed = f'value="{word}"' in user
    act = (
        {"action_type": "click", "index": 0, "target": "Save"}
        if typed
        else {"action_type": "input_text", "index": 3, "target": "Note", "text": word}
    )
    return f"Reason: The goal says so.\nAction: {json.dumps(act)}"
