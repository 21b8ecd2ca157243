# `make` builds, `make help` lists the rest. Every target sees to what it needs first (scripts/setup).

CARGO ?= cargo
# Options of `tapeline demo` and `peers run`, such as make demo ARGS="--duration 60s".
ARGS ?=
# For how long `make fuzz` goes on.
FUZZ_SECONDS ?= 600
# One fuzz target alone; all of them, one after the other, without it.
TARGET ?=
# For how long `make soak` goes on, behind the day's messages.
SOAK_SECONDS ?= 7200
# For how long `make hunt` goes on.
HUNT_SECONDS ?= 28800
# A program of tests that has not ended after this time is ended, and the tests that had not ended are named.
TEST_LIMIT ?= 20m
# For how many minutes `make hosts` goes on, with how many messages a second, and with how many packets of a hundred lost.
MINUTES ?= 10
RATE ?= 50k
LOSS ?= 1
# How many days `make faults` tries.
SEEDS ?= 50
# For how long `make torture` goes on. TORTURE_SEED=N repeats a run.
TORTURE_SECONDS ?= 600

# rustup's folder, for shells that have not read its profile since it was installed. Last: it overrules nothing.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
# Continuous integration builds exactly what Cargo.lock says; a person may be about to change it.
locked := $(if $(CI),--locked)
target_dir := $(or $(CARGO_TARGET_DIR),target)
# Most tests wait for something: so many run at a time that the cores have work meanwhile.
export RUST_TEST_THREADS ?= $(shell echo $$((6 * $$(nproc 2>/dev/null || echo 2))))
# The whole workspace, whatever is run of it: the same libraries with the same features, built once.
tests = $(CARGO) test $(locked) --workspace --features tapeline-client/tokio
limited = --config 'target."cfg(all())".runner=["$(CURDIR)/scripts/limited", "$(TEST_LIMIT)"]'
# In a folder of their own: other flags are another build of everything below.
models = RUSTFLAGS="--cfg loom" $(CARGO) test $(locked) --package tapeline-ring --lib --target-dir $(target_dir)/loom -- models

.DEFAULT_GOAL := build
.PHONY: build demo test loom torture fuzz faults hub-faults lint bench bench-peers install-c clean help
.NOTPARALLEL:

build: ## build everything in release mode
	@scripts/setup build
	$(CARGO) build --release $(locked) --workspace

demo: ## run the whole data path on this machine: simulated exchange, plant, subscribers and clients; ends with a verdict and a latency table
	@scripts/setup demo
	$(CARGO) build --release $(locked) --workspace --bin tapeline
	$(target_dir)/release/tapeline demo $(ARGS)

test: ## run every test that needs only Rust, a C compiler and captures
	@scripts/setup test
	$(tests) $(limited)
	$(models)

loom: ## check the ring's models with each memory ordering weakened in turn; LOOM_MAX_PREEMPTIONS=3 tries more interleavings
	@scripts/setup test
	LOOM_SWEEP=1 $(models)::sweep --nocapture

torture: ## kill the ring's processes at random for TORTURE_SECONDS, from TORTURE_SEED
	@scripts/setup test
	TORTURE_SECONDS=$(TORTURE_SECONDS) $(tests) --test torture -- --nocapture

hunt: ## run torture, seeds, faults, kills and fuzzing in turns for HUNT_SECONDS (8 hours), from the end of the last hunt; ends with a verdict
	@scripts/setup test
	scripts/hunt $(HUNT_SECONDS)
.PHONY: hunt

soak: ## run a plant for SOAK_SECONDS (2 hours) with clients that connect and disconnect, and a day at full speed: a plot of its resources, and a verdict
	@scripts/setup build
	$(CARGO) build --release $(locked) --workspace --bin tapeline
	scripts/soak $(SOAK_SECONDS)
.PHONY: soak

fuzz: ## fuzz every decoder and the ring, guided by coverage, for FUZZ_SECONDS in all after the build; TARGET=… fuzzes one
	@scripts/setup test
	@command -v cargo-fuzz >/dev/null || $(CARGO) install --locked cargo-fuzz
	CARGO='$(CARGO)' scripts/fuzz $(FUZZ_SECONDS) $(TARGET)

faults: ## run SEEDS fault scenarios against a real plant, and a thousand times as many against arbitration alone: no silent loss
	@scripts/setup test
	FAULT_SEEDS=$(SEEDS)000 $(tests) --test feed faults:: -- --nocapture
	FAULT_PLANT_SEEDS=$(SEEDS) $(tests) --test commands -- faults::a_plant_loses faults::a_plant_that_asks --nocapture

# SEEDS, FROM and SEED reach the test as make passes on what is given to it.
sim: ## simulate whole plants from SEEDS seeds (1000), starting at FROM; SEED=N prints the events of one
	@scripts/setup test
	$(tests) --test seeds what_must_hold -- --nocapture
.PHONY: sim

journal-kills: ## kill a journal's writer, then a whole plant with clients, KILLS times (200) under load: no published tick is lost
	@scripts/setup test
	JOURNAL_KILLS=$(or $(KILLS),200) $(tests) --test journal killed:: -- --nocapture
	PLANT_KILLS=$(or $(KILLS),200) $(tests) --test commands plant_kills:: -- --nocapture
.PHONY: journal-kills

slow-disk: ## run a plant with clients on a disk of 128 KiB/s (as root, with cgroup v1): late ticks are not lost
	@scripts/setup test
	SLOW_DISK=1 $(tests) --test commands plant_disk::slow -- --nocapture
.PHONY: slow-disk

bridge-aeron: ## build target/release/tapeline with Aeron (CMake, clang), and test bridges over it with real media drivers
	@scripts/setup aeron
	PATH="$$(scripts/newer-cmake $(target_dir))" && export PATH && \
		$(tests),tapeline/aeron --release --test aeron --test commands --no-run && \
		AERONMD="$$(scripts/aeronmd $(target_dir)/release)" && export AERONMD && \
		$(tests),tapeline/aeron --release --test aeron && $(tests),tapeline/aeron --release --test commands bridge::
.PHONY: bridge-aeron

hosts: ## as root: run three plants on hosts of their own (network namespaces) for MINUTES (10) at RATE messages/s, with LOSS per cent of all packets lost, and kill one and let another join late in each minute; DOC=1 writes docs/benchmarks/hosts.md
	@scripts/setup hosts
	$(CARGO) build --release $(locked) --workspace --bin tapeline
	tests/hosts/run.py $(target_dir)/release/tapeline --minutes $(MINUTES) --rate $(RATE) --loss $(LOSS) $(if $(DOC),--doc docs/benchmarks/hosts.md) $(ARGS)
.PHONY: hosts

hub-faults: ## test faulty hub clients, each next to a healthy one that must not be affected, and time them
	@scripts/setup test
	$(tests) --test commands hub_faults:: -- --nocapture --test-threads 1

hostile: ## attack every port of a plant for HOSTILE_SECONDS (60), next to a healthy client: its losses, and its latency with and without the attack
	@scripts/setup test
	HOSTILE_SECONDS=$(or $(HOSTILE_SECONDS),60) $(tests) --release --test commands hostile::who_means -- --nocapture
.PHONY: hostile

readme: ## run the commands of README and docs verbatim in a fresh clone, the README's two commands first
	@scripts/setup test
	scripts/readme
.PHONY: readme

lint: ## check formatting, clippy, fuzz targets, project rules, features and packages
	@scripts/setup lint
	$(CARGO) fmt --all --check
	CUSTOM_LIBFUZZER_PATH=/none/libnone.a $(CARGO) clippy $(locked) --workspace --all-targets --features tapeline-fuzz/libfuzzer-sys,tapeline-node/tracing,tapeline-client/tokio -- -D warnings
	$(CARGO) clippy $(locked) --package tapeline-wire --no-default-features -- -D warnings
	@if $(CARGO) tree $(locked) --package tapeline-wire --no-default-features --edges normal --prefix none | grep -E '^(tokio|hyper|rustls|mio) '; then \
		echo 'tapeline-wire without its features has these'; exit 1; fi
	@if $(CARGO) tree $(locked) --package tapeline-node --edges normal --prefix none | grep -E '^(clap|anyhow|anstream) '; then \
		echo 'a library that parses or prints for a command line: tapeline-node has these'; exit 1; fi
	$(CARGO) package $(locked) --quiet --allow-dirty --workspace --exclude tapeline-fuzz --exclude tapeline-sim --no-verify
	scripts/check-style
	scripts/check-style-test

bench: ## run every bench
	@scripts/setup bench
	$(CARGO) bench --quiet $(locked) --workspace --bench '*'

# RECORD=1 puts the counts on record.
RECORD ?=
instructions: ## count the instructions for each message on the hot paths, and fail if a count rises; RECORD=1 records the counts
	@scripts/setup instructions
	CARGO='$(CARGO)' RECORD='$(RECORD)' scripts/instructions
.PHONY: instructions

bench-peers: ## compare the ring with other queues and the machine's limits, and ITCH decoding with other libraries; DOC=1 writes docs/benchmarks
	@scripts/setup bench-peers
	DOC='$(DOC)' RUN='$(RUN)' peers/bench $(ARGS)
	$(if $(ARGS)$(RUN),,$(MAKE) bench-peers-itch)

burst: ## measure bursts, for two minutes; DOC=1 writes docs/burst.md
	@scripts/setup build
	$(CARGO) build --profile dist $(locked) --workspace --bin tapeline
	TAPELINE=$(target_dir)/dist/tapeline scripts/burst $(if $(DOC),--page docs/burst.md)
.PHONY: burst

bench-peers-itch: ## compare ITCH decoding and books with other libraries (PEERS_SRC=FOLDER: also those in C++); DOC=1 writes docs/benchmarks/itch.md
	@scripts/setup bench-peers
	$(if $(PEERS_SRC),PEERS_SRC=$(PEERS_SRC) )$(CARGO) run --release --manifest-path peers/itch/Cargo.toml --target-dir $(target_dir)/peers -- $(if $(DOC),--to docs/benchmarks/itch.md) $(ARGS)
.PHONY: bench-peers-itch

# ETA's jars for Java: what `make interop` brought.
ETA_JARS ?= $(abspath $(target_dir))/interop/lib
bench-peers-rwf: ## compare the RWF codec with LSEG's libraries (C: your build in RTSDK=DIR; Java: ETA_JARS=DIR); DOC=1 writes docs/benchmarks/rwf.md
	@scripts/setup bench-peers
	$(if $(RTSDK),RTSDK='$(RTSDK)' )ETA_JARS='$(ETA_JARS)' $(CARGO) run --release --manifest-path peers/rwf/Cargo.toml --target-dir $(target_dir)/peers -- $(if $(DOC),--to docs/benchmarks/rwf.md) $(ARGS)
.PHONY: bench-peers-rwf

bench-hub: ## compare the hub's throughput with a bare relay and LSEG's pairs (your build in RTSDK=FOLDER); DOC=1 writes docs/benchmarks/hub.md
	@scripts/setup bench
	$(CARGO) bench --quiet $(locked) --workspace --bench hub -- $(if $(RTSDK),--rtsdk '$(abspath $(RTSDK))') $(if $(DOC),--to $(abspath docs/benchmarks/hub.md)) $(ARGS)
.PHONY: bench-hub

bench-tick: ## compare the tickerplant with a bare relay by rate, with no log, a written and a synced log; DOC=1 writes docs/benchmarks/tick.md
	@scripts/setup bench
	rm -rf $(target_dir)/bench-tick
	$(CARGO) bench --quiet $(locked) --workspace --bench tick -- --keep $(abspath $(target_dir))/bench-tick $(if $(DOC),--to $(abspath docs/benchmarks/tick.md)) $(ARGS)
.PHONY: bench-tick

bench-bridge: ## measure the bridge between two plants by carrier and rate, beside bare datagrams (AERON=1: over Aeron too, and beside bare Aeron; ARCHIVE=JAR, io.aeron:aeron-all: joining late beside Aeron Archive); DOC=1 writes docs/benchmarks/bridge.md
	@scripts/setup bench
	$(if $(AERON),@scripts/setup aeron)
	$(if $(AERON),PATH="$$(scripts/newer-cmake $(target_dir))" && export PATH && )$(CARGO) bench --quiet $(locked) --workspace $(if $(AERON),--features tapeline/aeron) --bench bridge -- $(if $(ARCHIVE),--archive '$(abspath $(ARCHIVE))') $(if $(DOC),--to $(abspath docs/benchmarks/bridge.md)) $(ARGS)
.PHONY: bench-bridge

bench-growth: ## plot cost by size: items, clients, symbols, orders, lengths, subscribers, load up to the knee, memory; DOC=1 writes docs/benchmarks/growth.md
	@scripts/setup bench
	$(CARGO) bench --quiet $(locked) --workspace --bench growth -- $(if $(DOC),--to $(abspath docs/benchmarks/growth.md)) $(ARGS)
.PHONY: bench-growth
bench-books: ## measure decoding and books of DEEP and DBN beside what memory allows and plain collections; DOC=1 writes docs/benchmarks/books.md
	@scripts/setup bench
	$(CARGO) bench --quiet $(locked) -p tapeline-feed --bench books -- $(if $(DOC),--to $(abspath docs/benchmarks/books.md)) $(ARGS)
.PHONY: bench-books

bench-journal: ## compare the journal with bare files: page cache, disk, synced; DOC=1 writes docs/benchmarks/journal.md
	@scripts/setup bench
	$(CARGO) bench --quiet $(locked) --workspace --bench journal -- $(if $(DOC),--to $(abspath docs/benchmarks/journal.md)) $(ARGS)
.PHONY: bench-journal

bench-omm: ## compare the performance tools with LSEG's (your build in RTSDK=FOLDER), with a report of all runs; DOC=1 writes docs/benchmarks/omm-tools.md
	@scripts/setup bench
	rm -rf $(target_dir)/bench-omm
	$(CARGO) bench --quiet $(locked) --workspace --bench omm -- $(if $(RTSDK),--rtsdk '$(abspath $(RTSDK))') --keep $(abspath $(target_dir))/bench-omm $(if $(DOC),--to $(abspath docs/benchmarks/omm-tools.md)) $(ARGS)
.PHONY: bench-omm

pgo: ## make a profile-guided build, and measure it against the ordinary one (docs/pgo.md)
	@scripts/setup build
	scripts/pgo
.PHONY: pgo

python: ## build the Python package into target/python, and run its tests in an environment of its own
	@scripts/setup python
	scripts/python
.PHONY: python

ops: ## check ops/ and the runbook: a real Prometheus gets data for each query of the dashboard, and each alert fires for its fault, and a real collector of OpenTelemetry (with Go 1.26) takes pushed metrics; ARGS=ALERT checks one
	@scripts/setup ops
	$(CARGO) build --release $(locked) --workspace --bin tapeline
	tests/ops/check.py $(target_dir)/release/tapeline $(ARGS)
.PHONY: ops

bench-python: ## measure the Python package beside databento, lseg-data and Parquet (in an environment of its own)
	@scripts/setup python
	$(CARGO) build --profile dist $(locked) --workspace --bin tapeline
	scripts/python
	python3 -m venv $(target_dir)/python/bench
	$(target_dir)/python/bench/bin/pip install --quiet --disable-pip-version-check --upgrade polars==2.1.0 databento==0.87.0 lseg-data==2.1.1 $(target_dir)/python/tapeline-*.whl
	$(target_dir)/python/bench/bin/python python/benches/rates.py --tapeline $(target_dir)/dist/tapeline $(ARGS)
.PHONY: bench-python

c: ## build and run the tests and examples of the C and C++ library with GCC and Clang, and their sanitizers
	@scripts/setup c
	TAPELINE_COMPILERS=all $(tests) --test commands c_library
.PHONY: c

# Where `make install-c` puts the C library: PREFIX/include, PREFIX/lib with the files for pkg-config and CMake.
PREFIX ?= /usr/local
install-c: ## build the C and C++ library, and install it under PREFIX
	@scripts/setup build
	scripts/install-c "$(PREFIX)"

# How many items each pair of programs opens, in `make interop`.
ITEMS ?= $(if $(CI),1000,10000)
interop_dir := $(abspath $(target_dir))/interop
interop: ## run LSEG's and others' clients and servers against Tapeline's, over every transport; DOC=1 writes docs/interop.md
	@scripts/setup interop
	tests/interop/build '$(interop_dir)'
	INTEROP='$(interop_dir)' INTEROP_ITEMS=$(ITEMS) DOC='$(DOC)' \
		$(tests) --quiet --test interop -- every_pair --nocapture
	INTEROP='$(interop_dir)' $(tests) --quiet --test kdb interop:: -- --nocapture
	INTEROP='$(interop_dir)' $(tests) --quiet --test commands in_python -- --nocapture
	CHROMIUM="$${CHROMIUM:-chromium}" $(tests) --quiet --test browser
.PHONY: interop

interop-rtsdk: ITEMS = 1000
interop-rtsdk: ## run LSEG's performance tools in C and C++ (your build in RTSDK=FOLDER) against Tapeline's programs; DOC=1 writes docs/interop.md
	@test -x '$(RTSDK)/bin/ConsPerf' || { echo "interop-rtsdk: RTSDK=FOLDER names a folder with LSEG's tools in bin; docs/interop.md says how they are built" >&2; exit 2; }
	@scripts/setup interop
	tests/interop/certificates '$(interop_dir)/certificates'
	INTEROP='$(interop_dir)' INTEROP_ITEMS=$(ITEMS) RTSDK='$(abspath $(RTSDK))' DOC='$(DOC)' \
		$(tests) --quiet --test interop -- every_tool --nocapture
.PHONY: interop-rtsdk

# The profile of the packages' binary. In continuous integration the one that is built by then.
PROFILE ?= $(if $(CI),release,dist)
packages: ## build .deb, .rpm, a static tarball, an image for containers and the list of parts into target/packages; PROFILE=release is quick
	@scripts/setup packages
	CARGO='$(CARGO)' PROFILE=$(PROFILE) scripts/packages
	$(if $(CI),PROFILE=$(PROFILE) scripts/packages-check)
.PHONY: packages

packages-check: ## as root: install, run, upgrade and remove the packages in a bare Debian 12, also under systemd
	@scripts/setup packages
	PROFILE=$(PROFILE) scripts/packages-check
.PHONY: packages-check

soak-packages: ## as root: run two plants from the packages under systemd for SOAK_SECONDS (2 hours), one restarted again and again, with clients of every kind
	@scripts/setup packages
	$(if $(wildcard $(target_dir)/packages),,CARGO='$(CARGO)' PROFILE=$(PROFILE) scripts/packages)
	scripts/soak-packages $(SOAK_SECONDS)
.PHONY: soak-packages

release: ## check everything that a release of VERSION=… needs, build its packages, and say what is left to do by hand
	@scripts/setup packages
	CARGO='$(CARGO)' scripts/release '$(VERSION)'
.PHONY: release

clean: ## remove build output; run folders stay
	$(CARGO) clean

help: ## this list
	@sed -n 's/^\([a-z-]*\): ## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14
