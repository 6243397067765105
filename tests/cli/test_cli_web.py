"""``swarm-ui eval web``: a file of tasks on a site, played in a real browser."""

from __future__ import annotations

import json

import pytest
from cli_world import Shell, shell  # noqa: F401
from web_site import site

from swarm_ui.environments.miniwob import find_browser


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed")
def test_a_file_of_tasks_is_played(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    check = {"eval_types": ["url_match"], "reference_url": "__SHOP__/terms"}
    tasks = [
        {"task_id": name, "start_url": f"__SHOP__/{name}", "intent": "Open the terms",
         "eval": check}
        for name in ("terms", "shop")
    ]  # fmt: skip
    (shell.folder / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    done = 'Action: {"action_type": "status", "goal_status": "complete"}'
    (shell.folder / "done.txt").write_text(done, encoding="utf-8")
    with site() as shop:
        monkeypatch.setenv("SHOP", shop.url)
        assert shell("play web env.data=tasks.json").out.split() == ["terms", "shop"]
        ended = shell("eval web env.data=tasks.json --model script:done.txt --out r --json")
    assert ended.code == 0, ended.err
    (plan,) = ended.json["plans"]
    assert (plan["solved"], plan["masked"]) == (1, 0), plan
    assert shell("eval web --model script:done.txt").code == 2
