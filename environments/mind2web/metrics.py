"""Mind2Web's metrics, computed from episodes by the official formulas.

Source: OSU-NLP-Group/Mind2Web, ``action_prediction/metric.py``, reimplemented from its behaviour.
The special cases of the official scorer are kept, because numbers are comparable only with them:

- A step counts 0 for the element, the operation and the step if the pruning removed all right
  elements, if there is no answer, or if the answer is "none of these".
- Any right element is accepted. An ancestor of it is right if the data list it as right.
- Operation F1 compares the *sets* of whitespace-separated words of ``"OP value"``, with case. Only
  the first line of the value counts. Two empty sets have F1 1.0. A click has no value.
- Macro is the mean over tasks of each task's mean. The paper reports macro. Upstream's keys spell
  it ``marco``.
- Task success is the share of tasks without a wrong step: upstream's ``error_ratio`` of 0.

One difference changes the numbers: upstream asks in groups of five candidates and then among the
winners. Here an agent sees all ``top_k`` candidates at once.
"""

from __future__ import annotations

from collections.abc import Sequence

StepScore = tuple[float, float, float]
"""Element accuracy, operation F1 and step success of a step."""

NAMES = {
    "element accuracy": "element_acc",
    "operation F1": "action_f1",
    "step success": "step_acc",
}
"""Names of these scores, and upstream's keys."""


def operation(op: str, value: str) -> str:
    """The text of an operation that the official scorer compares.

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
    found, gold = set(predicted.split()), set(recorded.split())
    if not found and not gold:
        return 1.0
    shared = len(found & gold)
    return 2 * shared / (len(found) + len(gold))


def step_score(
    predicted: tuple[str, str] | None, rights: Sequence[str], recorded: str
) -> StepScore:
    """Scores of one step.

    Args:
        predicted: node and operation of the answer; ``None`` for no answer or "none of these".
        rights: nodes of the right elements that the pruning kept.
        recorded: the recorded operation.
    """
    if predicted is None or not rights:
        return 0.0, 0.0, 0.0
    node, predicted_operation = predicted
    element = float(node in rights)
    f1 = operation_f1(predicted_operation, recorded)
    return element, f1, float(element == 1.0 and f1 == 1.0)
