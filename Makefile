# The everyday commands. `make demo` and `make test` build everything that they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find rust -name '*.rs' -o -name Cargo.toml)

# one interpreter for all builds, so that none invalidates another's
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: help demo test build lint stubs fuzz bench bench-smoke bench-peers bench-exact-peers replay wheel clean
help:
	@echo "make demo         look into a bundled agent session: what is in it, where it can be cut, what stays"
	@echo "make test         the whole test suite, Rust and Python, with lints, types and stubs"
	@echo "make build        the extension into $(VENV), optimised"
	@echo "make lint         clippy, rustfmt, ruff, mypy, basedpyright, the stub"
	@echo "make stubs        write python/ctxfast/_core.pyi anew from the Rust doc comments"
	@echo "make fuzz         exact counts against tiktoken on generated texts, for FUZZ_SECONDS (60); FUZZ_SEED, FUZZ_TEXTS"
	@echo "make bench        benchmarks of the package, its reference and the C floor (bench-peers: frameworks too)"
	@echo "make replay       what pruning and fitting cost in real sessions, where the data are (docs/replay.md)"
	@echo "make wheel        a wheel in dist/"

demo: build
	$(BIN)/python examples/demo.py

test: lint
	cargo test --locked --quiet --package ctxfast
	$(BIN)/python -m pytest --quiet

build: $(VENV)/.built

lint: build
	cargo fmt --check
	cargo clippy --locked --quiet --workspace --all-targets -- --deny warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/python tools/stubs.py --check

stubs: build
	$(BIN)/python tools/stubs.py

# more of the same in Rust first; tools/exact/fuzz.py says what it takes from the environment
fuzz: build
	PROPTEST_CASES=$${PROPTEST_CASES:-5000} cargo test --locked --release --quiet --package ctxfast exact
	$(BIN)/python tools/exact/fuzz.py

BENCH := $(BIN)/python -m pytest benches -o python_files='bench_*.py' --benchmark-enable --benchmark-columns=min,median,ops \
	--benchmark-group-by=group

bench: build
	$(BENCH)

bench-smoke: build
	$(BENCH) --sizes=100,1000 --benchmark-min-rounds=3 --benchmark-max-time=0.1 --quiet

# the frameworks have hundreds of dependencies: a virtual environment of their own
bench-peers: wheel
	test -x $(VENV)-peers/bin/python || $(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	$(VENV)-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group peers
	$(VENV)-peers/bin/python -m pip install --quiet --force-reinstall --no-deps dist/ctxfast-*.whl
	$(subst $(BIN),$(VENV)-peers/bin,$(BENCH)) -k peers --sizes=100,1000

# exact counts beside other tokenizers, on the texts in CORPUS (benches/exact_peers.py)
bench-exact-peers: wheel
	test -d "$(CORPUS)" || { echo "make bench-exact-peers CORPUS=directory (benches/exact_peers.py says what is in it)"; exit 1; }
	test -x $(VENV)-exact-peers/bin/python || $(PYTHON) -m venv $(VENV)-exact-peers
	$(VENV)-exact-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	$(VENV)-exact-peers/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group exact-peers
	$(VENV)-exact-peers/bin/python -m pip install --quiet --force-reinstall --no-deps dist/ctxfast-*.whl
	$(VENV)-exact-peers/bin/python benches/exact_peers.py $(CORPUS)

replay: build
	$(BIN)/python benches/replay.py

wheel: $(VENV)/.tools
	rm -rf dist
	$(BIN)/maturin build --locked --release --compression-level 9 --out dist --interpreter $(BIN)/python

clean:
	rm -rf $(VENV) $(VENV)-peers $(VENV)-exact-peers target dist benches/build benches/native/target

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --locked --release --quiet
	@touch $@

$(VENV)/.tools: pyproject.toml constraints.txt
	@command -v cargo >/dev/null || { echo "ctxfast needs a Rust toolchain (cargo, 1.88 or newer): https://rustup.rs"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "ctxfast needs Python 3.10 or newer as '$(PYTHON)' (or make PYTHON=...): https://www.python.org/downloads"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "ctxfast needs Python 3.10 or newer; '$(PYTHON)' is older (use make PYTHON=python3.12, say)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) lacks its venv module; on Debian: apt-get install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev
	@touch $@
