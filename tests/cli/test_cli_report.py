"""``report``: one page about several runs."""

from __future__ import annotations

import errno
import html
import os
import re
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401
from report_tab import opened_report
from shared_browser import SharedBrowser

from swarm_ui.experiment.results import ArmResult, Results
from swarm_ui.storage.run_directory import RunDirectory


def trained(folder: str, successes: tuple[float, ...], **config: object) -> Path:
    """A run of training that measured these iterations."""
    document = {"made_by": "swarm-ui", "command": "train", "environment": {"name": "phone"},
                "team": {"agents": 4, **config}}  # fmt: skip
    run = RunDirectory.create(Path(folder), config=document)
    for iteration, success in enumerate(successes):
        run.log({"kind": "iteration", "iteration": iteration, "episodes": 20, "masked": 0,
                 "success": success, "credit": success / 2})  # fmt: skip
    run.set_status({"stage": "trained"})
    return run.path


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")))


def section(page: Path, title: str) -> str:
    titled = rf'<section class="result"><h3>{title}.*?</section>'
    (found,) = re.findall(titled, page.read_text(encoding="utf-8"), re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", str(found))))


def test_a_folder_that_cannot_be_written_is_one_line_and_needs_no_change_for_another_file(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained("train", (0.5,))
    shell(f"run {LAMP} -n 2 -m script:mixed.txt --out played")
    (Path("played/report.html")).unlink()
    opened = Path.open

    def refused(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if mode == "xb" and path.parent.name in ("train", "played", "traces"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *args, **options)

    monkeypatch.setattr(Path, "open", refused)
    for run in ("train", "played", "played/traces/episodes.jsonl"):
        done = shell(f"report {run}")
        assert done.code == 2 and done.err.count("\n") == 1, (run, done.err)
        assert "cannot be written: [Errno 13] Permission denied" in done.err
        assert shell(f"report {run} -o other.html").code == 0
        assert text_of(Path("other.html"))
    Path("train/plots").rmdir()
    mkdir = Path.mkdir

    def unmade(path: Path, *args: Any, **options: Any) -> None:
        if path.name == "plots":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        mkdir(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", unmade)
    assert shell("report train -o other.html").code == 0
    done = shell("train --resume train")
    assert done.code == 2 and "cannot write the run directory 'train'" in done.err


def test_played_runs_are_set_side_by_side(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(shown.append(address)) or True)
    shell(f"eval {LAMP} -n 4 -m script:mixed.txt --out runs/one")
    shell(f"eval {LAMP} -n 4 -m script:right.txt --out runs/two")
    os.remove("runs/two/report.html")
    done = shell("report runs/one runs/two -o pages/both.html --json")
    assert done.json["report"] == "pages/both.html" and shown == []
    page = Path("pages/both.html")
    success = section(page, "Success by split")
    assert "episodes 50.0 [" in success and "100.0 [" in success and "n = 4" in success
    gap = section(page, "Difference to one on the same episodes")
    assert "two episodes +50.0 [" in gap
    differ = section(page, "Settings that differ")
    assert "model.name script:mixed.txt script:right.txt" in differ
    assert "run.out" not in differ and "team.agents" not in differ
    assert 'href="../runs/one/report.html"' in page.read_text(encoding="utf-8")
    assert Path("runs/two/report.html").is_file(), "what the page links to is there"
    assert "Learning curves: none of the runs" in text_of(page)
    assert shell("report runs/one runs/two --open").code == 0
    assert shown == [Path("report.html").resolve().as_uri()], "and it was replaced silently"
    assert shell("report runs/one runs/two").code == 0


def test_curves_are_overlaid(shell: Shell) -> None:  # noqa: F811
    trained("a/run", (0.2, 0.4), rounds=1)
    trained("b/run", (0.2, 0.6), rounds=3)
    trained("third", (0.2, 0.4), rounds=3)
    assert shell("report a/run b/run third").code == 0
    page = Path("report.html").read_text(encoding="utf-8")
    (chart,) = re.findall(
        r"<figure[^>]*><figcaption>Success of rollouts by iteration.*?</figure>", page
    )
    assert re.findall(r"</i>(.*?)</li>", chart) == ["a/run = third", "b/run"], "equal lines are one"
    assert chart.count("<polyline") == 2
    assert ">a/run = third: 20 % at 1<" in chart and ">60</text>" in chart, "shares are percentages"
    assert ">0.6</text>" not in chart
    assert "team.rounds 1 3 3" in section(Path("report.html"), "Settings that differ")
    assert "Success: none of the runs" in text_of(Path("report.html"))


def test_policies_of_demos_are_rows_and_checkpoints_a_curve(shell: Shell) -> None:  # noqa: F811
    for name, solved in (("x", 1.0), ("y", 0.0)):
        path = trained(name, ())
        arms = [
            ArmResult(split=split, arm=arm, jobs=(("t", 0), ("t", 1)), outcomes=(solved, None))
            for split, arm in (("apps", "trained-team"), ("apps", "base-greedy"),
                               ("validation", "after-0"), ("validation", "after-1"))
        ]  # fmt: skip
        Results(arms=arms).save(path)
    assert shell("report x y").code == 0
    success = section(Path("report.html"), "Success by split")
    assert "apps base-greedy 100.0 [" in success and "after-0" not in success
    assert success.index("base-greedy") < success.index("trained-team"), "as in other tables"
    page = Path("report.html").read_text(encoding="utf-8")
    (chart,) = re.findall(r"<figure[^>]*><figcaption>Success of one agent on.*?</figure>", page)
    assert re.findall(r"</i>(.*?)</li>", chart) == ["x", "y"]
    assert ">100</text>" in chart and "Episodes</h2>" not in page.replace("</a>", "")
    assert "swarm-ui compare RUN:POLICY" in text_of(Path("report.html"))


def test_one_run_has_its_own_report(shell: Shell) -> None:  # noqa: F811
    shell(f"run {LAMP} -n 1 -m script:right.txt --out r --set run.report=false")
    assert shell("report r --json").json["report"] == "r/report.html"
    assert shell("report r/traces/episodes.jsonl --json").json["report"].endswith(".html")
    assert shell("report r -o r/copy.html").code == 0
    assert Path("r/copy.html").read_bytes() == Path("r/report.html").read_bytes()
    demo = trained("demo", ())
    config = (demo / "config.json").read_text(encoding="utf-8")
    (demo / "config.json").write_text(config.replace('"made_by"', '"by"'), encoding="utf-8")
    Results().save(demo)
    (demo / "report.html").write_text("by the demo", encoding="utf-8")
    assert shell("report demo").code == 0
    assert (demo / "report.html").read_text(encoding="utf-8") == "by the demo"


def test_what_no_page_is_written_about(shell: Shell) -> None:  # noqa: F811
    trained("a", (0.5,))
    Path("damaged").mkdir()
    Path("mine.html").write_text("<p>mine", encoding="utf-8")
    (trained("broken", ()) / "results.json").write_text("[]", encoding="utf-8")
    for words, said in (
        ("a nowhere", "there is no run 'nowhere'"),
        ("a damaged", "'damaged' is not a run: it has no config.json"),
        ("a broken", "the run 'broken' is damaged"),
        ("a ./a", "is named twice"),
        ("a right.txt", "there is no run 'right.txt'"),
        ("a broken -o mine.html", "exists and is not a report of swarm-ui"),
        ("a -o mine.html", "exists and is not a report of swarm-ui"),
        ("nowhere", "there is no 'nowhere'"),
    ):
        done = shell(f"report {words}")
        assert done.code == 2 and said in " ".join(done.err.split()), (words, done.err)
    assert not Path("report.html").exists()
    assert Path("mine.html").read_text(encoding="utf-8") == "<p>mine"


@pytest.mark.browser
async def test_links_lead_to_the_reports_and_names_stay_text(
    chromium: SharedBrowser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from swarm_ui.experiment.stored.overlay import overlay_report

    pytest.importorskip("websockets")
    monkeypatch.chdir(tmp_path)
    evil = 'javascript:alert(1)<img src=x onerror="document.title=1">?#%41'
    paths = [trained(evil, (0.5, 0.7), vote="<b>x</b>"), trained("plain", (0.4,))]
    page = overlay_report(paths, tmp_path / "all.html")
    async with opened_report(
        chromium, page, ready="!!document.querySelector('h1')", width=420
    ) as tab:
        links = await tab.js(
            "[...document.querySelectorAll('main td a, main th a')].map((a) => a.href)"
        )
        assert links == [(path.resolve() / "report.html").as_uri() for path in paths]
        assert evil in await tab.words("h1") and "<b>x</b>" in await tab.words("main")
        assert await tab.js("document.querySelectorAll('img').length") == 0
        assert await tab.js("document.documentElement.scrollWidth") <= 420
