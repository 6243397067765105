"""HTML reports for the runs of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment.replaying import episodes_in
from swarm_ui.experiment.stored.snapshot import snapshot, summary
from swarm_ui.files import write_atomic
from swarm_ui.report import EpisodeSet, ReportData, credit_map, gathered, write_report
from swarm_ui.report.contents import Episodes
from swarm_ui.report.page import GENERATOR, write_page
from swarm_ui.report.results import Results, existing_results
from swarm_ui.rollout import WAIT
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import holds_decisions
from swarm_ui.trace.records import Episode, StepRecord

_PICTURED = 30
"""Episodes whose screens are drawn as pictures, failed ones first."""


def run_report(run: Path, to: Path | None = None, *, refresh: int | None = None) -> Path:
    """Write the report of a run of any command, a demo's run, or a trace file; returns its path.

    Args:
        run: the run's folder, or the trace file.
        to: the file to write; default: ``report.html`` in the folder, or a page beside the file.
        refresh: seconds after which a browser loads the page again, for a run that plays.

    Raises:
        ConfigError: there is no such run or file, its report cannot be made again, or the file
            cannot be written, or is not a report.
    """
    if not run.exists():
        raise ConfigError(f"there is no '{run}': expected a run's folder, or a trace file")
    if run.is_file():
        target = to or run.with_suffix(".html")
        expect_report(target, f"the report of '{run}'")
        return trace_report(run, target)
    if to is not None:
        expect_report(to, f"the report of '{run}'")
    directory = RunDirectory.open_to_read(run)
    tested, config = (run / "results.json").exists(), directory.config()
    if config.get("made_by") == "swarm-ui" and tested and refresh is None:
        return evaluation_report(directory, existing_results(run), to)
    if _written_by_a_demo(run):
        raise ConfigError(f"'{run}' is a run of a demo, which writes its report itself")
    if refresh is not None:
        now = (
            f"The run is playing: {summary(snapshot(run))}. Short episodes end first, so rates "
            "differ from those at the end."
        )
        data = replace(gathered(run), summary=now, headline=None, refresh=refresh)
        return write_page(to or run / "report.html", data, run)
    if config.get("command") == "train":
        return training_report(directory, to)
    return write_report(run, to=to)


def current_report(run: Path, out: Path | None = None, *, refresh: int | None = None) -> Path:
    """Write the report of a run, or take the one that a demo wrote; returns its path.

    ``out``: a file for it outside of the run's folder, which is then not changed. ``refresh`` and
    errors: see :func:`run_report`.
    """
    if not _written_by_a_demo(run):
        return run_report(run, out, refresh=refresh)
    path = run / "report.html"
    if out is None:
        return path
    expect_report(out, f"the report of '{run}'")
    try:
        write_atomic(out, path.read_bytes())
    except OSError as error:
        raise ConfigError(f"the report '{out}' cannot be written: {error}") from error
    return out


def _written_by_a_demo(run: Path) -> bool:
    """Whether a demo made the report of a run. Such a report contains more than the folder."""
    if not all((run / name).is_file() for name in ("report.html", "results.json", "config.json")):
        return False
    return RunDirectory(run).config().get("made_by") != "swarm-ui"


def expect_report(target: Path, what: str) -> None:
    """Raise ``ConfigError`` if ``what`` would replace a page that is not a report."""
    if target.exists() and not is_report(target):
        raise ConfigError(
            f"'{target}' exists and is not a report of swarm-ui; {what} would replace it: choose "
            "another name, or rename it"
        )


def evaluation_report(run: RunDirectory, results: Results, to: Path | None = None) -> Path:
    """Write the report of a run; returns its path. ``to``: see :func:`run_report`."""
    found = gathered(run.path)
    sets = {part.name: part.episodes for part in found.sets}
    episodes = (e for arm in results.arms for e in sets.get(arm.name, ()))
    labels = dict.fromkeys(arm.label for arm in results.arms if arm.label)
    solved, masked = sum(arm.solved for arm in results.arms), sum(a.masked for a in results.arms)
    note = f" {masked} masked by faults." if masked else ""
    data = replace(
        found,
        title="; ".join(labels) or run.path.name,
        summary=f"{solved} of {len(results.outcomes) - masked} episodes solved.{note}",
        labels=results.labels,
        episodes=pictured(_failed_first(episodes)),
    )
    return write_page(to or run.path / "report.html", data, run.path)


def training_report(run: RunDirectory, to: Path | None = None) -> Path:
    """Write the report of a training run; returns its path. ``to``: see :func:`run_report`."""
    found = gathered(run.path)
    kept = sum(len(part.episodes) for part in found.sets)
    solved = sum(e.success is True for part in found.sets for e in part.episodes)
    data = replace(
        found,
        title=run.path.name,
        summary="A team that learned from its own rollouts, of which a few of each iteration are "
        f"kept: {solved} of these {kept} were solved.",
        episodes=pictured(_failed_first(e for part in found.sets for e in part.episodes)),
    )
    return write_page(to or run.path / "report.html", data, run.path)


def is_report(path: Path) -> bool:
    """Whether a file is a report that this library wrote."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(4096)


def trace_report(file: Path, path: Path) -> Path:
    """Write the report of a trace file, of episodes or of single decisions."""
    count = solved = 0
    for episode in episodes_in(file):
        count, solved = count + 1, solved + (episode.success is True)
    told = f"{count} episode{'s' * (count != 1)}, {solved} solved."
    if holds_decisions(file):
        told = f"Decisions without their episodes: {count}. They have no outcome."

    def drawn() -> Iterator[Episode]:
        return (found for episode in episodes_in(file) for found in pictured([episode]))

    data = ReportData(
        title=file.name,
        summary=told,
        heat_maps=tuple(filter(None, [credit_map(Episodes(lambda: episodes_in(file), count))])),
        sets=(EpisodeSet(name="", episodes=Episodes(drawn, count), file=file.name),),
    )
    return write_page(path, data, file.parent)


def with_screenshots(episode: Episode) -> Episode:
    """The episode; on the embedded phone, with a screenshot of every screen.

    Raises:
        SwarmError: it was recorded with another version of the phone.
    """
    from swarm_ui.environments.base import at_once
    from swarm_ui.environments.phone import PhoneEnvironment

    phone = PhoneEnvironment(screenshots=True)
    if episode.environment != phone.name:
        return episode
    observation = at_once(phone.reset(task=episode.task, seed=episode.seed))
    steps: list[StepRecord] = []
    for record in episode.steps:
        if replace(observation, png=None) != replace(record.trace.observation, png=None):
            raise SwarmError(
                f"phone: episode {episode.task}/{episode.seed}, step {len(steps)}: the screen is "
                "not the recorded one; the episode was recorded with another version"
            )
        steps.append(replace(record, trace=replace(record.trace, observation=observation)))
        observation = at_once(phone.step(record.executed or WAIT)).observation
    return replace(episode, steps=tuple(steps))


def _failed_first(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes to draw. A run may have more than fit in memory, so no others are kept."""
    failed: list[Episode] = []
    solved: list[Episode] = []
    for episode in episodes:
        group = solved if episode.success else failed
        if len(group) < _PICTURED:
            group.append(episode)
        if len(failed) == _PICTURED:
            break
    return [*failed, *solved][:_PICTURED]


def pictured(episodes: Sequence[Episode]) -> tuple[Episode, ...]:
    """The episodes, those of the embedded phone with screenshots where it can repeat them."""
    out: list[Episode] = []
    for episode in episodes:
        try:
            out.append(with_screenshots(episode))
        except SwarmError:
            # If the phone had other settings, the report draws the elements instead.
            out.append(episode)
    return tuple(out)
