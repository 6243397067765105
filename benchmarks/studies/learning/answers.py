"""The answers at the beginning of docs/results.md, from the committed records."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
_TRAINED = ("rft_vote", "full_vote")
"""Rows that represent stage 2: the default method, else the full method; both as a vote."""
_FEW = 3
"""Training seeds below which no answer is final."""


def answers(
    learning: Record,
    split: Record,
    split_model: Record,
    taught: Record,
    windows: Record,
) -> str:
    """The six answers as a numbered list; the arguments are records of benchmarks/results.
    ``taught`` is that of invented devices with a teacher."""
    lines = [
        f"**Does training a team help on tasks like those of the training?** "
        f"{_stage_2(learning, 'new_parameters')}",
        f"**Does it help in new apps?** {_new_apps(learning, taught)}",
        f"**Do messages help, and when?** {_talk(learning, split_model, windows)}",
        f"**Do learned edges help, and when?** {_edges(split, windows)}",
        f"**Is credit for messages worth more than the outcome?** {_credit(learning)}",
        f"**Is a team better than one agent with the same number of calls?** {_team(learning)}",
    ]
    return "\n".join(f"{k}. {line}" for k, line in enumerate(lines, 1)) + "\n"


def _new_apps(learning: Record, taught: Record) -> str:
    """Stage 2 with a teacher on invented devices, and without either."""
    lines = [c for c in taught["contrasts"] if (c["ours"], c["theirs"]) == ("512", "base")]
    line = next(c for c in lines if c["split"] == "apps")
    blind = next(c for c in lines if c["split"] == "blind")
    ends, seeds = (line["difference"], line["low"], line["high"]), len(line["by_seed"])
    on_blind = _points(blind["difference"], blind["low"], blind["high"])
    alone, of_alone = _gain(learning, "new_apps")
    return (
        f"{_verdict(*ends[1:], seeds)}, if half of the training is on many phones with invented "
        "apps, and [a teacher](generalisation.md#stage-2-with-a-teacher) (here a script) shows "
        "actions that no agent finds. The success of such a team differs from that of four "
        f"untrained agents by {_points(*ends)}, and on 16 other unseen apps by {on_blind} "
        f"({_seeds(seeds)}). Without invented apps and a teacher, the difference is "
        f"{_points(*alone)} ({_seeds(of_alone)})."
    )


def _stage_2(learning: Record, split: str) -> str:
    ends, seeds = _gain(learning, split)
    return (
        f"{_verdict(*ends[1:], seeds)}. The success of a trained team that votes differs from that "
        f"of four untrained agents by {_points(*ends)} ({_seeds(seeds)})."
    )


def _gain(learning: Record, split: str) -> tuple[tuple[float, float, float], int]:
    """The gain of stage 2 over four untrained agents with its interval, and its seeds."""
    rows = {line["name"]: line for line in learning["rows"] if line["split"] == split}
    name = next(name for name in _TRAINED if name in rows)
    row = rows[name]
    ends = (row["over_base_x4"], row["beats_base_x4_low"], row["over_high"])
    return ends, row["seeds"]


def _talk(learning: Record, split_model: Record, windows: Record) -> str:
    edges, agents = _of_windows(windows, "full, page order - vote without edges")
    gap = _difference(split_model, "needed edges - no talk")
    whole = next(
        line["over_own_vote"]
        for name in _TRAINED
        for line in learning["rows"]
        if line["name"] == name.removesuffix("_vote") and line["split"] == "new_parameters"
        and "over_own_vote" in line
    )  # fmt: skip
    effect = "No gain is shown" if whole <= 0 else "The gain is small"
    return (
        "Yes, if agents see different things. On "
        "[split facts](environments.md#split-facts-a-phone-for-a-team), where each agent sees one "
        f"app, messages change the success of a small language model by {_points(*gap)} (known "
        f"kinds of tasks, {_seeds(1)}). On "
        "[windows](windows.md#agents-that-were-trained-with-messages), where each agent sees a "
        "part of a long form, they change that of agents that learned to read them by "
        f"{_points(*edges)} ({_seeds(agents)}). {effect} if every agent sees the whole "
        "screen ([table](#what-learning-gains-on-the-phone))."
    )


def _edges(split: Record, windows: Record) -> str:
    redrawn = "learned edges, Thompson - random, redrawn each episode"
    other, agents = _of_windows(windows, redrawn)
    gap = _difference(split, "learned edges - 3 random senders")
    return (
        "Yes, if few agents have the information that is needed. (Edges say which agent sends "
        "messages to which.) On split facts, learned edges differ from edges of as many random "
        f"senders by {_points(*gap)} (scripted agents). On windows, they differ from random edges "
        f"that are drawn again for each episode by {_points(*other)} ({_seeds(agents)}). On whole "
        "screens there is no answer: "
        "the budget of this study is too small (`python benchmarks/edge_power.py --recorded`)."
    )


def _credit(learning: Record) -> str:
    what = (
        "On tasks like those of the training, training with a scripted critic, which scores each "
        "message, differs from training with the outcome of the episode"
    )
    return _contrast(learning, "critic against outcome", what)


def _team(learning: Record) -> str:
    what = (
        "On tasks like those of the training, a trained team that votes differs from one agent "
        "with the same calls in training and at test"
    )
    return _contrast(learning, "team against one agent", what)


def _contrast(learning: Record, name: str, what: str) -> str:
    """The verdict of a contrast on known templates; ``what`` says what differs from what."""
    line = next(
        line for line in learning["contrasts"]
        if (line["name"], line["split"]) == (name, "new_parameters")
    )  # fmt: skip
    ends, seeds = (line["gap"], line["low"], line["high"]), line["seeds"]
    return f"{_verdict(*ends[1:], seeds)}. {what} by {_points(*ends)} ({_seeds(seeds)})."


def _of_windows(windows: Record, name: str) -> tuple[tuple[float, float, float], int]:
    """A difference between teams without stage 2, on forms of known templates, and the number of
    window agents: those that were trained after the difference had been named."""
    found = windows["replication"]["contrasts"]
    line = next(each for each in found if each["name"] == name and each["named"])
    return (line["difference"], line["low"], line["high"]), line["seeds"]


def _difference(split: Record, name: str) -> tuple[float, float, float]:
    """A difference of a study of split facts on its known templates."""
    line = next(d for d in split["differences"] if (d["name"], d["templates"]) == (name, "train"))
    return line["difference"], line["low"], line["high"]


def _verdict(low: float, high: float, seeds: int) -> str:
    """What the interval says; with fewer than three training seeds nothing is settled."""
    found = "Yes" if low > 0 else "No, success is lower" if high < 0 else "Not shown"
    if seeds >= _FEW:
        return found
    return f"{found}, but {_seeds(seeds)} {'does' if seeds == 1 else 'do'} not settle this"


def _points(gap: float, low: float, high: float) -> str:
    return f"{100 * gap:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"


def _seeds(count: int) -> str:
    return f"{count} training seed" + ("s" if count > 1 else "")
