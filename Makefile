# `make` without a target lists the targets. It needs Rust, make and Python 3 (3.11 for the tests).
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-long test-clients test-deploy bench check openapi reference web screenshots measure audit dist test-dist

# The dev profile compiles in half the time and is fast enough to try the service; `make run PROFILE=release` for speed.
PROFILE ?= dev

# All commands that check or test use one set of features, so that no dependency is compiled twice. For this, cargo must
# include the tests' own dependencies: by --all-targets, by --tests, and for cargo doc by --examples.
# For the same reason the tests' build of the program writes the generated documents, not that of `cargo run`.
program = cargo build --quiet --profile test --locked --workspace --tests && "$${CARGO_TARGET_DIR:-target}/debug/pagebucket"

BENCH ?= appends reads streams views summaries series live
# Two peers of the benchmark of reads are libraries from npm. Without Node.js the benchmark leaves them out, and says so.
npm_peers = $(if $(filter reads,$(BENCH)),NPM_PEERS=$$(scripts/npm-packages benches/reads/peers) || echo 'bench: the libraries from npm will be left out' >&2; export NPM_PEERS;)

# PostgreSQL is a peer of three suites. Without it, likewise.
postgres = $(if $(filter appends reads streams,$(BENCH)),POSTGRES=$$(scripts/postgres) || echo 'bench: PostgreSQL will be left out' >&2; export POSTGRES;)

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target what; do printf 'make %-12s %s\n' "$$target" "$$what"; done

run: ## find or fetch a mongod, build, and serve on http://127.0.0.1:8080/ (ARGS: more flags for `pagebucket serve`)
	[ -n "$${MONGODB_URI:-}" ] || { MONGOD=$$(scripts/fetch-mongod); export MONGOD; }; exec cargo run --profile $(PROFILE) --locked -- serve $(ARGS)

test: ## set up what the tests need, and run them all (ARGS: more arguments for `cargo nextest run`)
	scripts/test $(ARGS)

test-fast: ## run the unit tests and the tests of HTTP on a mongod, without containers, Node.js, Python's tools and a browser (ARGS as above)
	scripts/test fast $(ARGS)

test-long: ## run all tests with ten times the faults, random appends and items (ARGS as above)
	TEST_LONG=1 NEXTEST_PROFILE=long scripts/test $(ARGS)

test-clients: ## test the clients for TypeScript and Python, the explorer, alerts, and clients that generators make (needs Node.js; PAGEBUCKET: test this program)
	scripts/test-clients

test-deploy: ## rehearse a deployment: docs/how-to/deploy.md block by block, the image, checkov (needs root on Debian; DEB, PAGEBUCKET: deploy this package, this program; ARGS: more arguments for pytest)
	scripts/test-deploy $(ARGS)

bench: ## compare appends, reads, streams, page views, summaries, time series and live streams with other ways, and what growth costs; writes benches/*.md (QUICK=1, BENCH=reads, ONLY=keys: see benches/README.md)
	MONGOD=$$(scripts/fetch-mongod); export MONGOD; $(npm_peers) $(postgres) exec cargo bench --locked --features bench --bench main -- $(BENCH)

check: ## check format, lints, documentation, licences, packages and the generated documents
	for script in scripts/* .ci/run; do if head -n 1 "$$script" | grep -q bash; then bash -n "$$script"; fi; done
	cargo fmt --all --check
	! LC_ALL=C.UTF-8 grep -rnP --include='*.rs' '^(?=.{111})\s*//(?![/! ]*\|)' api benches examples tests || { echo 'comments end at 110 columns' >&2; exit 1; }
	scripts/licences
	scripts/once-more --self-test
	cargo clippy --workspace --all-targets --features bench --locked -- -D warnings
	cargo check --workspace --tests --no-default-features --locked
	scripts/packages
	scripts/version
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --lib --examples --no-deps --locked --document-private-items
	diff -u openapi/openapi.json <($(program) openapi) && diff -u openapi/openapi-3.0.json <($(program) openapi --spec 3.0) || { echo 'a document in openapi/ is out of date: run make openapi' >&2; exit 1; }
	for page in settings metrics; do diff -u docs/reference/$$page.md <($(program) reference $$page) || { echo 'a page in docs/reference/ is out of date: run make reference' >&2; exit 1; }; done

openapi: ## write openapi/openapi.json and openapi/openapi-3.0.json again
	$(program) openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json
	$(program) openapi --spec 3.0 > openapi/openapi-3.0.json.new
	mv openapi/openapi-3.0.json.new openapi/openapi-3.0.json

reference: ## write the pages of flags and of metrics in docs/reference again
	for page in settings metrics; do $(program) reference $$page > docs/reference/$$page.md.new; mv docs/reference/$$page.md.new docs/reference/$$page.md; done

web: ## build the explorer into web/dist again (needs Node.js)
	cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run build

screenshots: ## make the pictures in docs/images again (needs Node.js and Chromium; PAGEBUCKET: of this program)
	scripts/test-clients screenshots

measure: ## print how fast the explorer is with 1,000,000 trades (needs Node.js and Chromium; PAGEBUCKET: of this program)
	scripts/test-clients measure

audit: ## look up every dependency in the advisory database (needs a network)
	@command -v cargo-deny >/dev/null || { echo 'make audit needs cargo-deny: cargo install --locked cargo-deny' >&2; exit 1; }
	cargo deny --locked check
	if command -v cargo-audit >/dev/null; then cargo audit; fi

dist: ## build archives, Debian packages, SBOMs and sums for x86-64 and arm64 Linux into target/dist (needs rustup; see docs/how-to/release.md)
	scripts/dist

test-dist: ## install and use what `make dist` has made (needs root on Debian; ARGS: more arguments for pytest)
	scripts/test-dist $(ARGS)
