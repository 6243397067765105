"""Mind2Web's metrics, computed from episodes, by the official formulas.

Source: OSU-NLP-Group/Mind2Web, ``action_prediction/metric.py``, reimplemented from how it works;
its quirks are kept, because numbers are only comparable with them:

- A step none of whose right elements survived the pruning counts 0 for the element, for the
  operation and for the step, whatever the agent does; so does a step without an answer, and one
  answered "none of these".
- Any right element will do; a click on an ancestor counts if it is listed as right.
- Operation F1 is over the *sets* of whitespace-separated words of ``"OP value"``, of the value's
  first line only, with case; two empty ones agree (1.0). A click has no value.
- Macro averages the steps of a task, then the tasks; the paper reports macro. Upstream's keys
  spell it ``marco``.
- Task success is the share of tasks without a wrong step: upstream's ``error_ratio`` of 0.

One thing differs, and makes numbers differ: upstream asks in groups of five candidates, winner
against winner; here an agent sees all ``top_k`` at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swarm_ui.environments.recorded.benchmark_scores import Question, Scores, measured
from swarm_ui.environments.recorded.teacher_forced import answers
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.environments.mind2web.data import Mind2Web

StepScore = tuple[float, float, float]
"""Element accuracy, operation F1, step success of one step."""


def operation(op: str, value: str) -> str:
    """An operation as the official scorer compares it.

    >>> operation("TYPE", "New York")
    'TYPE New York'
    """
    first = value.split("\n")[0].strip() if op != "CLICK" else ""
    return f"{op} {first}".strip()


def operation_f1(predicted: str, recorded: str) -> float:
    """Word-set F1 of two operations.

    >>> operation_f1("TYPE New York", "TYPE York")
    0.8
    """
    ours, theirs = set(predicted.split()), set(recorded.split())
    if not ours and not theirs:
        return 1.0
    shared = len(ours & theirs)
    return 2 * shared / (len(ours) + len(theirs))


def step_score(
    predicted: tuple[str, str] | None, rights: Sequence[str], recorded: str
) -> StepScore:
    """Scores of one step.

    Args:
        predicted: node and operation of the answer; ``None``: none of these, or no answer.
        rights: nodes of the right elements that survived the pruning.
        recorded: the recorded operation.
    """
    if predicted is None or not rights:
        return 0.0, 0.0, 0.0
    node, said = predicted
    element = float(node in rights)
    f1 = operation_f1(said, recorded)
    return element, f1, float(element == 1.0 and f1 == 1.0)


def score(data: Mind2Web, episodes: Sequence[Episode], *, seed: int, resamples: int) -> Scores:
    """See :meth:`swarm_ui.environments.mind2web.Mind2Web.score`."""
    steps: dict[str, list[StepScore]] = {}
    solved: dict[str, list[float]] = {}
    kept: dict[str, list[float]] = {}
    counts = dict.fromkeys(
        ("episodes", "masked by a fault", "steps", "pointing at no element", "not reached"), 0
    )
    for episode in episodes:
        counts["episodes"] += 1
        if episode.success is None:
            counts["masked by a fault"] += 1
            continue
        gold, task = data.load(episode.task), episode.task
        found = answers(gold, episode, name=data.name)
        scores = [step.score(said) for step, said in zip(gold, found.actions, strict=True)]
        steps.setdefault(task, []).extend(scores)
        solved.setdefault(task, []).append(float(all(s[2] == 1.0 for s in scores)))
        kept.setdefault(task, []).extend(float(bool(step.rights)) for step in gold)
        counts["steps"] += len(scores)
        counts["pointing at no element"] += found.lost
        counts["not reached"] += found.unreached
    questions = []
    for place, (name, key) in enumerate(
        (("element accuracy", "element_acc"), ("operation F1", "action_f1"),
         ("step success", "step_acc"))
    ):  # fmt: skip
        values = {task: [s[place] for s in scored] for task, scored in steps.items()}
        questions += [
            Question(name=f"{name} (macro)", key=f"marco_{key}", values=values, macro=True),
            Question(name=f"{name} (micro)", key=key, values=values),
        ]
    questions += [
        Question(name="task success", values=solved, macro=True),
        Question(name="right element kept by pruning", values=kept),
    ]
    return Scores(
        title=data.name,
        measures=measured(questions, seed=seed, resamples=resamples),
        counts=counts,
    )
