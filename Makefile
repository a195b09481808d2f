# Two commands need nothing but Python 3.11+ and a network for the first install: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-gpu check format clean

demo: $(INSTALLED)
	$(BIN)/counterpoint demo

# One thread a worker: torch's own threads would fight over the cores.
test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# Without the virtual environment: on a machine with a GPU, Python's own torch is the one that was built for it. Its
# libraries are not the pinned ones, so that their warnings are no errors.
test-gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -q -o filterwarnings=default -p no:cacheprovider \
		tests/nn/fast tests/test_cuda.py tests/augment

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
