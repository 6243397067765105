"""What is wrong is one clear sentence, found before anything is written, by a dry run too."""

from __future__ import annotations

import pytest
from cli_world import LAMP, Shell

RIGHT = f"eval {LAMP} light --model script:right.txt"
TEAM = "train phone --agents 2"
MISTAKES = [
    ("paly", "No such command 'paly'"),
    ("play fridge", "no environment 'fridge'"),
    ("play phone contacts-ad", "did you mean 'contacts-add'?"),
    # -- eval
    ("eval phone --agnts 4", "swarm-ui eval --help"),
    ("eval fridge", "no environment 'fridge'"),
    ("eval phone contacts-ad", "did you mean 'contacts-add'?"),
    (f"eval {LAMP} ligth --model script:right.txt", "no task 'ligth'; did you mean 'light'?"),
    ("eval phone team.agent=4", "team.agent: no such setting; did you mean 'team.agents'?"),
    ("eval phone --split nope", "it has parameters"),
    ("eval phone --model script:right.txt -n 0", "greater than or equal to 1"),
    ("eval phone --seed -1 -n 1", "--seed"),
    ("eval phone -m nobody", "no model 'nobody'"),
    (f"eval {LAMP} --model script:none.txt", "--model: cannot read the script 'none.txt'"),
    ("eval cli_world:nothing -m script:right.txt", "'cli_world:nothing' cannot be used"),
    ("eval mind2web", "env.data=PATH"),
    ("eval handset env.combinations=2", "combinations are those of a suite"),
    (f"{RIGHT} -a 2 --edges agent_0>agent_1,agent_1>agent_0",
     "--edges: the edges form a cycle: agent_0 -> agent_1 -> agent_0"),
    (f"{RIGHT} -a 2 --edges agent_0>agent_0", "--edges: the edges form a cycle"),
    (f"{RIGHT} -a 2 --edges agent_0>agent_1,agent_0>agent_1", "is given twice"),
    (f"{RIGHT} -a 2 --edges agent_0>agent_7", "no agent_7; the team has agent_0, agent_1"),
    (f"{RIGHT} -a 1 --edges agent_5>agent_6", "there is no agent_5 and no agent_6; the team"),
    (f"{RIGHT} -a 1 --edges ring", "--edges: 'ring' is not SENDER>LISTENER"),
    (f"{RIGHT} --on cluster", "expected 'local', 'ray'"),
    (f"{RIGHT} --on ray://head:10001", "is an address of the Ray Client"),
    ("eval coordination leader-geometric-17", "did you mean 'leader-geometric-16'?"),
    *((f"eval coordination leader-geometric-4 {option}",
       "each task of 'coordination' has its own agents, edges and rounds")
      for option in ("--agents 4", "--rounds 2", "--edges chain", "team.vote=majority")),
    # -- train
    ("train phone --model script:right.txt", "'script:right.txt' cannot be trained"),
    ("train autowebbench env.data=x", "'autowebbench' has only tests"),
    ("train coordination", "'coordination' has only tests"),
    (f"{TEAM} --method dp", "method"),
    (f"{TEAM} --edges chain --learn-edges redraw", "'chain' would not be used"),
    (f"{TEAM} --edges chain --learn-edges learned", "'chain' would not be used"),
    (f"{TEAM} team.temperatures=[0.2,0.5,0.8]", "each of 2 agents, got 3"),
    (f"{TEAM} --critic wrong", "expected scripted, llm, learned, outcome"),
    (f"{TEAM} --critic learned", "no learned critic in ''"),
    (f"{TEAM} --critic learned critic.folder=smollm2-phone", "no learned critic in 'smollm2-phone"),
    (f"{TEAM} critic.model=script:right.txt", "nobody asks this model"),
    (f"{TEAM} --critic llm critic.model=nobody", "no model 'nobody'"),
    ("train miniwob --agents 2 critic.teacher=scripted", "has no solver for it"),
    # -- synthesize
    ("synthesize phone", "name the folder of the corpus with --out"),
    ("synthesize fridge -o d", "no environment 'fridge'"),
    ("synthesize autowebbench env.data=x -o d", "must not be used for training"),
    ("synthesize demonstrations -o d", "needs your copy of the data: env.data=PATH"),
    ("synthesize phone recipes-star -o d", "would leak a test split into training"),
    ("synthesize phone --model base -o d", "reads screens only"),
    (f"synthesize {LAMP} -o d", "cannot solve its own tasks"),
    # -- finetune
    ("finetune nowhere c d", "no model 'nowhere'"),
    ("finetune tiny nowhere d", "no corpus in 'nowhere'"),
    ("finetune tiny c d finetune.epochs=-1 finetune.foo=1", "finetune.foo: no such setting"),
    ("finetune tiny", "name a model, at least one corpus"),
    # -- critic
    ("critic nowhere phone d", "no model 'nowhere'"),
    ("critic base phone d", "'base' cannot be trained as a critic"),
    ("critic tiny phon d", "did you mean 'phone'?"),
    ("critic tiny autowebbench d env.data=x", "is for tests only"),
    ("critic tiny phone phone d", "an environment is named twice"),
    ("critic tiny phone d --epochs 0", "epochs"),
    ("critic tiny phone d finetune.learning_rate=-1", "learning_rate"),
    ("critic tiny phone d --agent nobody", "no model 'nobody'"),
    ("critic tiny phone d --start nobody", "'nobody'"),
    ("critic tiny phone full", "is not empty and holds no critic"),
    ("critic tiny phone", "name a model, at least one environment"),
]  # fmt: skip
NEEDED = {"train": "torch", "finetune": "trl", "critic": "peft"}


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_a_mistake_is_told_before_anything_is_written(shell: Shell, line: str, said: str) -> None:
    command = line.partition(" ")[0]
    pytest.importorskip(NEEDED.get(command, "swarm_ui"))
    for name in ("tiny", "full"):
        (shell.folder / name).mkdir()
        (shell.folder / name / "config.json").write_text("{}")
    before = sorted(shell.folder.rglob("*"))
    more = ("", " --dry-run", " --out r") if command in ("eval", "train") else ("",)
    for words in (line + ending for ending in more):
        done = shell(words)
        assert done.code == 2 and said in " ".join(done.err.split()), (words, done.err)
        assert done.out == "" and "Traceback" not in done.err
    assert sorted(shell.folder.rglob("*")) == before
