PYTHON ?= python3.11
VENV := .venv
UV := $(VENV)/bin/uv

help:
	@echo hi
$(VENV)/.installed: requirements.lock requirements-uv.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --require-hashes -r requirements-uv.lock
	$(UV) pip sync --quiet --compile-bytecode --require-hashes requirements.lock requirements-uv.lock
	$(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
