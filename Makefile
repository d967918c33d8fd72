# `make demo` shows the library at work, `make test` checks it, `make test-all` takes longer.
# They need Python 3.11 or later and install everything else into .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := python -m pip install --quiet --disable-pip-version-check -c constraints.txt
CODE := src tests benchmarks docs typings
# A worker takes whole files, so that tests of one file share their fitted models.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile
# The markers of tests that only `make test-all` runs; tests/README.md explains them.
LONGER := slow or ray or compilers or docs

.PHONY: demo web test test-all test-longer lint types tests wheel docs bench fuzz clean test-device device-tools
.NOTPARALLEL:

demo: .venv/.with-cli,report,gp
	@echo "== Demo: simulated data; a sensor beside its truth, one task of the paper by all methods"
	$(BIN)/rdeepsense demo --out demo

# Trains, writes the page and serves it to this machine; Ctrl-C ends.
web: .venv/.with-cli,web
	@echo "== Web: activities told live, in the browser"
	$(BIN)/rdeepsense demo --web --out demo

test: lint types tests
	@echo "== All checks passed"

test-all: test test-longer
	@echo "== All checks passed, the longer ones too"

# What `make test` leaves out. Emulated devices need root, or sudo, to install Debian packages.
test-longer: .venv/.with-dev
	@echo "== Longer tests: Ray, compilers, long pages of the documentation"
	$(PYTEST) --durations=15 -m "$(LONGER)"
	@$(MAKE) --no-print-directory wheel docs
	@if $(MAKE) --no-print-directory device-tools; then $(MAKE) --no-print-directory test-device; \
	else echo "Skipped test-device: its tools cannot be installed here"; fi

lint: .venv/.with-dev
	@echo "== Lint: ruff, and the layers by import-linter"
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports

types: .venv/.with-dev
	@echo "== Types: mypy"
	$(BIN)/mypy src

tests: .venv/.with-dev
	@echo "== Tests: pytest on two cores, one thread each"
	$(PYTEST) --durations=15 -m "not ($(LONGER) or targets)"

# One shell, so that the trap takes the environment away whether the check passes or not.
wheel: .venv/.with-dev
	@echo "== Wheel: built, installed with the core dependencies alone, used outside the repository"
	@set -e; root=$$(pwd); mkdir -p build; \
	work=$$(mktemp -d "$$root/build/wheel.XXXXXX"); outside=$$(mktemp -d); \
	trap 'rm -rf "$$work" "$$outside"' EXIT; trap 'exit 130' INT TERM; \
	$(BIN)/pyproject-build --wheel --outdir "$$work/dist" . > "$$work/build.log" 2>&1 \
	  || { cat "$$work/build.log"; exit 1; }; \
	$(BIN)/python -m venv "$$work/venv"; \
	"$$work"/venv/bin/$(INSTALL) "$$work"/dist/*.whl; \
	cd "$$outside"; OMP_NUM_THREADS=1 "$$work/venv/bin/python" -I "$$root/tests/wheel_check.py"

docs: .venv/.with-dev
	@echo "== Documentation: site/index.html"
	$(BIN)/mkdocs build --strict

bench: .venv/.with-bench
	@echo "== Benchmark: a bank of networks against one after the other"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bank.py

# For FUZZ_SECONDS, from FUZZ_SEED; a short part of it is among the tests.
fuzz: .venv/.with-dev
	@echo "== Fuzz: files of every kind, damaged and hostile, for $${FUZZ_SECONDS:-120} s"
	PYTHONPATH=tests OMP_NUM_THREADS=1 RUST_BACKTRACE=0 $(BIN)/python -m fuzz

# Leaves .venv alone: it takes minutes to make again.
clean:
	rm -rf build dist site demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# .venv/.with-dev stands for an environment that holds the extra `dev`, as pyproject.toml has it.
.venv/.with-%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "== Installing rdeepsense[$*] into .venv"
	$(BIN)/$(INSTALL) -e '.[$*]'
	@touch $@

$(BIN)/pip:
	@echo "== Creating .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "rdeepsense needs Python 3.11 or later, this is %d.%d; try: make PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv

# Generated C on emulated machines. tests/deploy/targets/tools names the Debian packages it takes.
test-device: .venv/.with-dev .venv/.with-device device-tools
	@echo "== Generated C: microcontrollers, other processors and WebAssembly, emulated"
	RDEEPSENSE_TARGETS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/deploy/targets

device-tools:
	@missing=$$(while read -r program packages; do \
	  command -v "$$program" > /dev/null || echo "$$packages"; done < tests/deploy/targets/tools); \
	if [ -n "$$missing" ]; then \
	  root="$$([ "$$(id -u)" = 0 ] || echo sudo) env DEBIAN_FRONTEND=noninteractive"; \
	  echo "== Installing" $$missing; \
	  $$root apt-get update -qq && \
	  $$root apt-get install -y -qq --no-install-recommends $$missing > /dev/null; \
	fi
