# One command for each thing. `make help` lists them. Steps leave stamps in build/stamps: a second run does only what has changed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

STAMPS := build/stamps
PY := .venv/bin/python
KIT := build/vscode
VSIX := build/dvm-live.vsix
WORKERS ?= -n 2

NATIVE := CMakeLists.txt $(wildcard dvm_core/native/*)
MODULES := $(shell find dvm_core adapter -name '*.py' 2>/dev/null | sort)
TYPESCRIPT := $(shell find extension -name '*.ts' -o -name '*.mjs')

.PHONY: help setup torch native test test-python test-devices test-protocol test-extension test-vscode sanitize demo bench vsix lint format screenshot goldens coverage fuzz clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- set-up ----------------------------------------------------------------------------------------------------------------------
setup: $(STAMPS)/native ## virtual environment, MindSpore, native build

$(STAMPS)/venv:
	@mkdir -p $(@D) && scripts/setup.sh venv && touch $@

$(STAMPS)/packages: $(STAMPS)/venv pyproject.toml
	@scripts/setup.sh packages && touch $@

# Where PyTorch cannot be had, its tests are skipped and say so; the next run tries again.
torch: $(STAMPS)/native
	@$(PY) -c 'import torch' 2>/dev/null || { echo "[setup] torch 2.13.0"; \
	  $(PY) -m pip --disable-pip-version-check install -q torch==2.13.0 || echo "[setup] torch 2.13.0 cannot be installed: left out"; }

# An editable install lists the modules it serves: a module that came or went needs it again.
build/modules: FORCE
	@mkdir -p build && echo "$(MODULES)" | cmp -s - $@ || echo "$(MODULES)" >$@
FORCE:

$(STAMPS)/native: $(STAMPS)/packages $(NATIVE) build/modules
	@scripts/setup.sh native && touch $@

native: $(STAMPS)/packages ## build the native core again
	@scripts/setup.sh native && touch $(STAMPS)/native

$(STAMPS)/node: package-lock.json
	@mkdir -p $(@D) && scripts/node.sh && touch $@

$(STAMPS)/vscode: tests/vscode/kit/setup.sh scripts/system.sh
	@mkdir -p $(@D) && tests/vscode/kit/setup.sh $(KIT) && touch $@

# ---- extension -------------------------------------------------------------------------------------------------------------------
$(STAMPS)/extension: $(STAMPS)/node $(TYPESCRIPT) $(wildcard tests/vscode/unit/* tests/vscode/host/*)
	@echo "[extension] type check and bundle"
	@npm run --silent typecheck && node extension/build.mjs --tests && touch $@

vsix: $(VSIX) ## the extension's package, build/dvm-live.vsix
$(VSIX): $(STAMPS)/node $(TYPESCRIPT) $(filter adapter/%,$(MODULES)) package.json $(wildcard package.nls*.json l10n/*) README.md CHANGELOG.md LICENSE .vscodeignore $(wildcard media/*)
	@echo "[extension] package"
	@npx --no-install vsce package --no-dependencies --allow-missing-repository --no-rewrite-relative-links --out $@ >build/vsce.log || { cat build/vsce.log; exit 1; }
	@tail -1 build/vsce.log

# ---- tests -----------------------------------------------------------------------------------------------------------------------
# The workbench waits more than it computes: the sanitizers' builds take what it leaves.
test: setup $(STAMPS)/extension $(STAMPS)/vscode $(VSIX) ## the set-up and every test
	@failed=0; $(MAKE) -k test-python test-protocol test-extension || failed=1; \
	$(MAKE) -k -j2 --output-sync=target test-vscode sanitize || failed=1; exit $$failed

# Tests start many processes, and some environments write no bytecode while they run.
.PHONY: compiled
compiled: setup
	@$(PY) -m compileall -q -j 2 --invalidation-mode checked-hash adapter dvm_core tests/protocol

test-python: setup torch compiled ## unit, property and conformance tests
	$(PY) -m pytest $(WORKERS) --dist loadfile --no-loadscope-reorder tests/python tests/conformance

test-devices: setup ## the conformance cases on the faithful devices, too
	for device in npu-sim:910b:faithful npu-sim:950:faithful; do \
	  DVM_DEVICE=$$device $(PY) -m pytest $(WORKERS) --dist loadfile tests/conformance; done

test-protocol: setup compiled $(STAMPS)/node ## the debug adapter over real DAP, under three clients
	$(PY) -m pytest $(WORKERS) --dist worksteal tests/protocol
	DVM_TEST_PYTHON=$(CURDIR)/$(PY) node --test tests/protocol/testsupport/suite.mjs

test-extension: $(STAMPS)/venv $(STAMPS)/extension $(STAMPS)/vscode ## the extension on a stand-in adapter
	node --test build/exttest/unit/
	DVM_TEST_PYTHON=$(CURDIR)/$(PY) node tests/vscode/host.mjs $(KIT)

test-vscode: setup $(STAMPS)/vscode $(VSIX) ## the whole product in a real VS Code workbench; TIMES=20 tells which tours fail now and then
	node tests/vscode/tours.mjs $(KIT) $(VSIX) --times $${TIMES:-1}

# A program of the core's sources without Python; EFFORT=20 draws twenty times as much.
sanitize: $(STAMPS)/packages ## native tests built for the address, undefined behaviour and thread sanitizers
	@PATH="$(CURDIR)/.venv/bin:$$PATH" nice -n 19 scripts/sanitize.sh $${EFFORT:-1}

# ---- the rest --------------------------------------------------------------------------------------------------------------------
demo: setup ## train a model under the debugger and show what it does
	@$(PY) examples/digits/demo.py

# PyTorch is measured beside us where it can be installed; TORCH=0 leaves it out.
bench: setup ## speed against MindSpore and others, build/bench.json
	@[ "$${TORCH:-1}" = 0 ] || $(MAKE) torch
	@$(PY) benchmarks/run.py

lint: setup $(STAMPS)/node ## formatters and type checkers
	$(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/clang-format --dry-run -Werror {dvm_core,tests}/native/*.cc {dvm_core,tests}/native/*.h dvm_core/frontends/mindspore_backend/*.cc
	npm run --silent typecheck
	npm run --silent lint

format: setup $(STAMPS)/node ## put every file into its format
	$(PY) -m ruff check --fix .
	.venv/bin/clang-format -i {dvm_core,tests}/native/*.cc {dvm_core,tests}/native/*.h dvm_core/frontends/mindspore_backend/*.cc
	npm run --silent format
	$(PY) scripts/tables.py

screenshot: setup $(STAMPS)/vscode $(VSIX) ## the pictures of README.md, in media
	node tests/vscode/screenshot.mjs $(KIT) $(VSIX) build/screenshot.png
	node tests/vscode/tours.mjs $(KIT) $(VSIX) training stops looks watch
	$(PY) scripts/pictures.py

goldens: setup ## write the stored texts of tests (tile code by device, protocol logs) anew: look at the diff
	DVM_GOLDEN=update $(PY) -m pytest $(WORKERS) tests/python/test_goldens.py tests/protocol/test_golden.py

coverage: setup torch ## which ops of the frameworks are ours, docs/coverage.md
	$(PY) scripts/coverage.py

fuzz: setup ## longer random tests
	HYPOTHESIS_PROFILE=fuzz $(PY) -m pytest --timeout=0 $$(grep -l hypothesis tests/python/test_*.py)

clean: ## remove what was built; .venv and the downloaded workbench stay
	rm -rf build/Release build/exttest build/screenshots build/*.vsix $(STAMPS)/native $(STAMPS)/extension extension/dist
