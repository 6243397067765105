"""``swarm-ui config``: writes a commented configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.cli.out_files import writing
from swarm_ui.cli.output import Output
from swarm_ui.files import write_atomic

TEMPLATE = """\
# Settings of swarm-ui. Every line is the default; delete the # of a line to change its value.
# Lines with # depend on the command or on the model, or have no default.
# swarm-ui eval --config swarm-ui.toml       flags and --set SECTION.NAME=VALUE override this file

[environment]
name = "phone"            # phone, invented, phone-split, miniwob, androidworld, handset,
                          # mind2web, autowebbench, web, or "module:factory"
tasks = []                # only these, such as ["contacts-add"]; empty: all
held_out = []             # train: tasks to leave out, for a test of your own
devices = 32              # invented: number of devices, of 8 apps each
wordings = "many"         # invented: few or many wordings of each kind of goal
apps = 10                 # phone-split: number of apps on the screen, 4 to 10
family = "android_world"  # androidworld, handset: or android, information_retrieval, miniwob, …
# suite_seed = 30         # androidworld, handset: upstream's suite for this seed
combinations = 1          # instances of each task in that suite
split = ""                # phone: parameters, templates, apps, validation, train
                          # invented: devices, parameters, validation, train
                          # miniwob: reference, blind, all; empty: the first of these
episodes = 0              # number of episodes; 0: 20, or one for each named task
seed = 0                  # chooses the episodes; equal settings give equal episodes
# max_steps = 30          # maximum number of steps of an episode
data = ""                 # mind2web, autowebbench: folder of your copy
screenshots = false       # a PNG in every observation, for models with vision
published = false         # miniwob: upstream's time limit and reward
wrap = []                 # wrappers, the innermost first, such as ["step-limit:steps=12"]

[model]
name = "base"             # base and general ship with swarm-ui; smollm2 (after swarm-ui
                          # models pull smollm2); a folder of a model; "org/name" on the Hugging
                          # Face Hub; script:FILE; "module:factory"; or, with url, the name that is
                          # served
url = ""                  # OpenAI-compatible, up to /v1, such as "http://localhost:8000/v1"
key_env = "OPENAI_API_KEY"  # the variable that holds the key; do not write the key here
adapters = ""             # RUN/adapters of a trained team; the folder of one adapter;
                          # "served": the endpoint has them
prompt_format = ""        # json, compact; empty: the adapter's, or else the model's own
# constrained = false     # model in this process: replies may be any text; default: in the
                          # compact format only actions that are possible on the screen
# prompt_tokens = 4000    # longer prompts are shortened; default: the context of a model in
                          # this process less the reply, and no limit for an endpoint
device = "cpu"            # of a model from a folder; "auto": all devices
quantize = ""             # "4bit": load a model from a folder in 4 bits, to train on one GPU
# actor = "http://localhost:8000/v1"  # train: a vLLM server that acts with the adapters
# actor_name = ""         # name of the model there; empty: its only base model
# max_calls = 1000        # budget: requests, and below it tokens
# max_tokens_total = 1000000
# rate_limit = 10         # requests per second
concurrency = 16          # concurrent requests
timeout = 60.0            # seconds of one attempt
vision = false            # the model accepts images: send it screenshots
token_field = "max_tokens"  # the endpoint's name for [team] max_tokens; OpenAI's newer models
                          # know only "max_completion_tokens"
send_seed = false         # send seeds, to an endpoint that can repeat its replies (vLLM, SGLang)

[team]
# agents = 1              # train: 4
# rounds = 1              # train: 3
edges = "random"          # random, none, chain, debate, star, tree, or "agent_0>agent_1"
density = 0.5             # chance that two agents are joined at random
# views = "same"          # train: "shuffle", different orders; "window", "pane": parts
vote = "majority"         # "probability": the proposal that all agents together find most
                          # probable; needs a model that can score replies
# temperature = 0.0       # train: 0.8; default: the endpoint's own, or 0 in this process
# temperatures = [0.2, 0.5, 0.6, 0.8]  # one for each agent, instead of temperature
# max_tokens = 256        # of a reply; default: the endpoint's own, or 256 in this process
seed = 0                  # of random edges

[run]
out = ""                  # folder of the run; empty: runs/<date>-<name>
concurrency = 8           # concurrent episodes in this process
# on = "ray"              # workers of a Ray cluster on this machine; "ray:HOST:PORT": a running
                          # cluster; "local": this process
# fail_under = 0.5        # exit with 1 if a smaller share is solved
max_masked = 0.2          # report no success rate if faults ended a larger share
report = true             # write report.html
log = []                  # loggers: "tensorboard", "wandb", "mlflow", or "module:factory"

[ray]                     # workers of a cluster, for [run] on
# workers = 4             # maximum number; default: as many as fit
episodes = 1              # concurrent episodes of each worker
cpus = 1.0                # CPUs that each worker reserves
gpus = 0.0                # GPUs that each worker reserves for its model, such as 0.25
# resources = {emulator = 1}  # Ray's custom resources that each worker reserves; default: those
                          # that the environment needs
# model_actors = 1        # processes that hold the model for all workers; 0: each worker loads
                          # its own. Default: 1, and 0 for the base agent; an endpoint needs none
gpus_per_model = 0.0      # the share of a GPU that each of these processes gets
shared_folder = false     # train: publish adapters in the run's folder, which all machines see
                          # under the same path; false: through Ray's object store

[critic]                  # swarm-ui train: who assigns credit
# kind = "scripted"       # knows the simulated task; llm: a model is asked; learned: a trained
                          # critic; outcome. Default: scripted where there is one, else outcome
# judge = "scripted"      # says which single actions are right; default: the critic
adversary = "scripted"    # writes mistakes: scripted, llm or none
teacher = "none"          # shows a right action where no agent proposed one: scripted, llm or none
model = ""                # llm: the model, empty: the agents' own; learned: the critic's folder
url = ""                  # llm: the endpoint of that model

[train]                   # swarm-ui train; see TeamConfig in the reference
# iterations = 5
# episodes = 128          # in each iteration
# edges = "redraw"        # fixed, or learned (with graphs >= 2)
# shared_iterations = 0   # the first iterations that train one adapter for all agents

[train.update]
# method = "rft"          # train on right actions; dpo, ipo: on preference pairs; grpo,
                          # gspo: policy gradient
# batch_size = 32

[synthesize]              # swarm-ui synthesize; see CorpusConfig in the reference
levels = [1, 2, 3]        # questions, instructions of one step, preferences
prompt_format = "json"    # compact: short, for models that are trained on it
questions = 8             # at most, about one screen
instructions = 6          # at most, for one screen
stray = 0.0               # share of random actions in walks

[finetune]                # swarm-ui finetune; see FinetuneConfig in the reference
method = "lora"           # full: all weights
rank = 16
epochs = 1.0              # of each stage
learning_rate = 1e-4      # of the supervised stages; SmolLM2: 1e-3
batch_size = 4
accumulate = 4            # batches in one step of the optimiser
max_length = 4096         # tokens of a sample; longer ones are left out
"""


def config(
    path: Annotated[Path, typer.Argument(metavar="FILE",
                                         help="file to write; - for standard output")]
    = Path("swarm-ui.toml"),
    force: flags.Force = False,
) -> int:  # fmt: skip
    """Write a commented configuration file.

    Example: [bold]swarm-ui config swarm-ui.toml[/]
    """
    output = Output()
    if str(path) == "-":
        output.lines(TEMPLATE)
        return exits.OK
    flags.expect_new(path, force)
    with writing(path):
        write_atomic(path, TEMPLATE)
    output.say(f"wrote {path}")
    output.command("next", "swarm-ui", "eval", "--config", str(path), "--dry-run")
    return exits.OK
