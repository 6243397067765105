# make demo    the main job: what a team of agents learns
# make test    the tests
# make check   ruff and mypy
# make model   a real language model, SmolLM2-135M-Instruct, into your cache folder (100 MB)
# make adapter the adapter for SmolLM2 that this package contains (two hours on two cores)
# make docs    the documentation site, into build/site
#
# ARGS goes to the demo or to pytest:   make demo ARGS="--out runs/demo"     make test ARGS="-m slow -x"
# PIP_ARGS goes to pip; outside of macOS, this fetches the small CPU build of PyTorch:
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"

VENV ?= .venv
ARGS ?=
PIP_ARGS ?=
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CACHES := $(VENV)/.caches
# Many tests wait for a process, a socket or a browser, so there is one worker more than cores.
WORKERS ?= $(shell expr `getconf _NPROCESSORS_ONLN` + 1)

# The first interpreter that is new enough.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$p; break; fi; done)
endif

.PHONY: demo model adapter test check docs format install constraints clean
.DELETE_ON_ERROR:

demo: $(STAMP)
	$(BIN)/python demos/androidworld_swarm.py $(ARGS)

model: $(STAMP)
	$(BIN)/swarm-ui models pull smollm2 $(ARGS)

# A third of the broad corpus, about as many samples as the included adapter was trained on (it
# changes only the layers 8 to 29); then 120 steps at a fifth of the rate, most of them on the phone.
# Repeat the command to continue. glibc should keep freed memory, which the next step needs again.
OUT ?= runs/adapter
CORPUS = $(BIN)/swarm-ui synthesize --prompt-format compact
BROAD = synthesize.messages=0.15 synthesize.screens=1 synthesize.questions=1 synthesize.instructions=1
WALKED = 'synthesize.levels=[2,3]' synthesize.stray=0.12
FURTHER = 'synthesize.levels=[3]' synthesize.stray=0.12 synthesize.seed=7
TRAINING = finetune.preferences=false finetune.batch_size=16 finetune.accumulate=1 finetune.max_length=320
adapter: export GLIBC_TUNABLES = glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456
adapter: $(STAMP) model
	$(CORPUS) phone -n 1700 $(BROAD) $(WALKED) -o $(OUT)/phone
	$(CORPUS) invented env.devices=512 -n 2700 $(BROAD) $(WALKED) -o $(OUT)/invented
	$(CORPUS) demos.base_agent.environment:InventedScreens pages -n 1600 $(BROAD) -o $(OUT)/pages
	$(CORPUS) demos.base_agent.environment:InventedScreens devices -n 600 $(BROAD) -o $(OUT)/devices
	$(CORPUS) phone -n 330 $(FURTHER) -o $(OUT)/further-phone
	$(CORPUS) invented env.devices=512 -n 110 $(FURTHER) -o $(OUT)/further-invented
	$(BIN)/swarm-ui finetune smollm2 $(addprefix $(OUT)/,phone invented pages devices trained) $(TRAINING) \
	    finetune.epochs=0.35 finetune.learning_rate=1e-3
	$(BIN)/swarm-ui finetune smollm2 $(addprefix $(OUT)/,further-phone further-invented further) $(TRAINING) \
	    --adapters $(OUT)/trained/final finetune.learning_rate=2e-4 finetune.max_steps=120 finetune.seed=1

# Without bytecode, every process that a test starts compiles the library, and every worker of pytest
# the tests: a fifth of the CPU time.
test: export OMP_NUM_THREADS = 1
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p swarm_ui -p benchmarks

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(CACHES)

# What the first `make check test` would otherwise do, partly in each of its processes: compile the
# library and the tests, and type-check all packages. `make demo` does without. What fails here is
# reported by `make check test`: `wait` always succeeds.
$(CACHES): export PYTHONDONTWRITEBYTECODE =
$(CACHES): $(STAMP)
	$(BIN)/python -m compileall -q swarm_ui nodes optim environments
	@$(BIN)/mypy -p swarm_ui -p benchmarks >/dev/null & \
	 $(BIN)/python -m pytest -q --collect-only >/dev/null; wait
	@touch $(CACHES)

# Installs again only when what to install has changed.
$(STAMP): pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then echo "swarm-ui needs Python 3.11 or newer, and none was found." \
	"Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 2; fi
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[train,web,dev,docs]'
	@touch $(STAMP)

# Resolves anew and pins exactly what `demo` and `test` install. PyTorch's version is chosen here.
TORCH ?= 2.13.0
constraints:
	@printf 'torch==$(TORCH)\n' > .torch.txt
	$(PYTHON) -m pip install --dry-run --ignore-installed --quiet --report .resolved.json \
		$(PIP_ARGS) -c .torch.txt '.[train,web,dev,docs]'
	@printf '# What `make demo` and `make test` install. Made by `make constraints`.\n' > .pins.txt
	@$(PYTHON) -c 'import json; \
		found = [i["metadata"] for i in json.load(open(".resolved.json"))["install"]]; \
		pins = sorted((m["name"].lower().replace("_", "-"), m["version"].split("+")[0]) for m in found); \
		print(*(f"{n}=={v}" for n, v in pins if n != "swarm-ui"), sep="\n")' >> .pins.txt
	@mv .pins.txt constraints.txt
	@rm -f .torch.txt .resolved.json

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
