# Two commands do everything on a machine that has Python >= 3.11 and make:
#   make demo   runs the main job          make test   passes the tests
# Both build .venv first. `make test PYTHON=python3.13` builds it anew with the Python that is named, `make matrix` runs
# the tests with every supported Python that is installed, each in an environment of its own.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Small matrices gain nothing from threads inside BLAS; the tests run in two processes instead.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: install demo test nightly check coverage docs pages results reproduce bench format clean matrix

install: $(STAMP)

# Unless a Python was named, any environment that is there will do.
ifeq ($(origin PYTHON),file)
ENVIRONMENT := $(VENV)/pyvenv.cfg
else
ENVIRONMENT := $(VENV)/.python-$(shell $(PYTHON) -c "import sys; print('%d.%d.%d' % sys.version_info[:3])")
endif

$(ENVIRONMENT):
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "spdmetric needs Python >= 3.11; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(STAMP): pyproject.toml $(ENVIRONMENT)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/first_steps/plot_learning.py
	$(BIN)/python -m reproduction toy --quick --out results

test: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

# Every Python of MATRIX that is on PATH or known to pyenv; the counts stand at the end.
MATRIX ?= 3.11 3.12 3.13
COUNTS := $(MATRIX:%=build/matrix-%.txt)
matrix: $(MATRIX:%=matrix-%)
	@tail -qn 1 $(COUNTS)
	@! tail -qn 1 $(COUNTS) | grep -q FAILED

.PHONY: $(MATRIX:%=matrix-%)
$(MATRIX:%=matrix-%): matrix-%:
	@mkdir -p build
	@python=$$(for python in python$* "$$(pyenv root 2>/dev/null)"/versions/$*.*/bin/python3; do \
		"$$python" -c "import sys; assert sys.version.startswith('$*.'); print(sys.executable)" 2>/dev/null && break; \
	done); \
	if [ -z "$$python" ]; then echo "Python $*: not installed" | tee build/matrix-$*.txt; exit; fi; \
	{ $(MAKE) test PYTHON="$$python" VENV=.venv-$* || echo FAILED; } 2>&1 | tee build/matrix-$*.txt; \
	counts=$$(grep -E '[0-9]+ (passed|failed|error).* in ' build/matrix-$*.txt | tail -n 1); \
	if [ "$$(tail -n 1 build/matrix-$*.txt)" = FAILED ]; then counts="FAILED $$counts"; fi; \
	echo "Python $*: $$counts" >> build/matrix-$*.txt

# 10,000 examples of the properties, 7,700 damaged and hostile files, commands killed and interrupted at 210 random
# moments, memory, the wheel in a new environment: half an hour to an hour on two cores. What was tried stands at the end.
# `make nightly SHARE=0.03` does that share of it, to see whether it works.
SHARE ?= 1
nightly: $(STAMP)
	SPDMETRIC_NIGHTLY=1 SPDMETRIC_SHARE=$(SHARE) $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal \
		tests/test_properties_public.py tests/test_fuzz.py tests/test_faults.py tests/test_memory.py \
		tests/test_gaussian.py tests/test_wheel.py tests/test_threads.py tests/test_comparison_errors.py \
		tests/test_comparison.py::test_finished_folds_survive_interruptions_at_any_moment

# Every table and figure that docs/paper.md quotes, into results/paper. DATA is a folder with the folders
# brodatz, bci2a (or bci2a-a09) and eegmmi; what is absent is named and left out.
DATA ?= $(SPDMETRIC_DATA)
reproduce: $(STAMP)
	$(BIN)/python -m reproduction all --repeats 50 --out results/paper $(if $(DATA),--data $(DATA))

# All tables and pictures that the pages quote, into docs/results, the cheap and most quoted ones first: some hours
# on two cores. Interrupted, the same command goes on; a table that this state of the code computed is left alone.
results: $(STAMP)
	@test -d '$(DATA)' || { echo "make results needs DATA=FOLDER, or the variable SPDMETRIC_DATA"; exit 1; }
	$(ONE_THREAD) $(BIN)/python -m reproduction.recompute --data '$(DATA)'

# Tables and stamps of the pages, from docs/results.
pages: $(STAMP)
	$(BIN)/python docs/_ext/quotes.py

# Ratios against peers, into benchmarks/results.json; FULL=1 for larger budgets.  In an environment as users have it:
# numba imports some tools of developers where they are installed, and each process would pay for them.  The
# pymanopt peers need torch there as well (pip install torch==2.13.0); a peer that is missing is named in the table.
BENCH ?= .venv-bench
bench:
	test -d $(BENCH) || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet '.[compare,textures]' pymanopt
	$(BENCH)/bin/python -m pip install --quiet --force-reinstall --no-deps .
	$(BENCH)/bin/python benchmarks/run.py $(if $(FULL),,--quick)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests once more, with the lines that none of them reaches. Compiled kernels cannot be traced: they run as
# plain Python here only where a test calls them so.
coverage: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term-missing:skip-covered

# The site, into docs/_build/html: every example is run, warnings are errors, nothing is fetched.
DOCS_STAMP := $(VENV)/.docs-installed
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[dev,docs]'
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP)
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-* build dist results docs/_build docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
