# Two commands need nothing but Python 3.11+ and a network for the first install: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
GPU_PYTEST = OMP_NUM_THREADS=4 PYTHONPATH=src $(PYTHON) -m pytest -q -o filterwarnings=default -p no:cacheprovider

.PHONY: demo docs figures test fuzz test-gpu test-gpu-pieces test-gpu-training check format clean

demo: $(INSTALLED)
	$(BIN)/counterpoint demo

# The pictures of README and docs. They come from the demo's runs, which are made if they are not there, and from CIFAR-10.
figures: $(INSTALLED)
	$(BIN)/python benchmarks/make_figures.py

# One thread per worker: torch's own threads would fight over the cores. Files in their own order: pytest-xdist would keep
# those with the fewest tests for the end, among them the longest tests, and a core would have nothing to do.
test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Hostile files and settings by the thousand, others every time; `make test` tries a few, the same every time.
fuzz: $(INSTALLED)
	COUNTERPOINT_FUZZ=5000 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/fuzz

# Without the virtual environment: on a machine with a GPU, Python's own torch is the one that was built for it. Its
# libraries are not the pinned ones, so that their warnings are no errors.
# In two processes, since most of the time goes into compiling kernels.
test-gpu:
	$(MAKE) --jobs 2 --output-sync=target --no-print-directory test-gpu-pieces test-gpu-training

test-gpu-pieces:
	$(GPU_PYTEST) tests/nn/fast tests/augment

test-gpu-training:
	$(GPU_PYTEST) tests/training/test_cuda.py

# From nothing each time, so that no page of an earlier build is left; a warning is an error. Open build/site/index.html.
docs: $(INSTALLED)
	rm -rf build/site build/doctrees
	$(BIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going -d build/doctrees docs build/site

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
