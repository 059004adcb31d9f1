# The two commands a newcomer needs are `make demo` and `make test`; both create .venv first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
PEERS := .venv-peers/openenv-core/.ready .venv-peers/openenv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check format lock clean

help:
	@echo "make demo    a small model becomes good at a job on this machine: skill, weights, certificate, server (no key)"
	@echo "make test    every test"
	@echo "make check   format, lint, types, layers and the fast tests, in under a minute"
	@echo "make format  let ruff mend what it can"
	@echo "make lock    pin requirements/*.txt anew from pyproject.toml"

$(STAMP): requirements/dev.txt requirements/torch.txt pyproject.toml
	@echo "Setting up .venv from requirements/dev.txt (pinned, with hashes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.txt
	@$(BIN)/python -c "import torch" 2> /dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/torch.txt \
		|| { echo "PyTorch's CPU build was not found where pip looks. Install torch 2.13 (CPU) into .venv, and start this again." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
	@echo "Ready: $(BIN)/whet"

# Other systems, each in an environment of its own, whose clients and servers our wires are tested with.
.venv-peers/%/.ready: requirements/peers/%.txt | $(STAMP)
	@echo "Setting up .venv-peers/$* from $< (pinned, with hashes) ..."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-peers/$*
	@VIRTUAL_ENV=.venv-peers/$* $(BIN)/uv pip install --quiet --require-hashes -r $<
	@touch $@

demo: $(STAMP)
	@$(BIN)/whet demo

test: $(STAMP) $(PEERS)
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 -m "not slow"

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml requirements/torch-needs.in --extra dev --override requirements/without-torch.txt --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements/dev.txt
	echo "openenv-core==0.3.0" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements/peers/openenv-core.txt
	echo "openenv==0.10.0" | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements/peers/openenv.txt

clean:
	rm -rf .venv .venv-peers .pytest_cache .ruff_cache .import_linter_cache dist
