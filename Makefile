# Everything a developer does here. CI runs .ci/run, which runs test, check and race.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# The module, and the benchmarks' own module once it is there.
MODULES := . $(patsubst %/go.mod,%,$(wildcard bench/go.mod))
# Pinned, and run from the module proxy, so that go.mod knows nothing of them.
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRCHECK := github.com/kisielk/errcheck@v1.30.0
ERRORLINT := github.com/polyfloyd/go-errorlint@v1.8.0
INEFFASSIGN := github.com/gordonklaus/ineffassign@v0.2.0

# $(call everywhere,COMMAND) runs a command in every module.
everywhere = @for m in $(MODULES); do (cd "$$m" && $(1)) || exit 1; done

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the example that needs nothing but Go (examples/stdlib)
	$(GO) run ./examples/stdlib

.PHONY: test
test: ## Run all tests, and build for the browser (js/wasm)
	$(GO) test -shuffle=on ./...

.PHONY: race
race: ## Run all tests under the race detector, concurrent scenes at a fraction of their size
	@cc="$$(scripts/cc.sh)"; set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout=30m ./...

# What takes long, each by itself: hours on two cores.
SOAKS := soak-model soak-sweep soak-simulation soak-disk soak-storm soak-long soak-race soak-guards
.PHONY: soak $(SOAKS)
soak: $(SOAKS) ## Run everything in full size, for hours (docs/reliability.md); or one of soak-NAME

# A seed is printed when one fails; SEED=N plays it again.
SEED ?= 0
soak-model: ## 20,000 sequences of 100 operations on the model and on SQLite
	$(GO) test ./internal/systemtest/model -run '^TestModel$$' -rapid.seed=$(SEED) -rapid.checks=20000 -rapid.steps=100 -timeout=4h

soak-sweep: ## Every fault at every store call of every scenario
	WEAVER_SWEEP=full $(GO) test ./internal/systemtest/sweep -run Sweep -v -timeout=1h

soak-simulation: ## 20,000 seeds of the deterministic simulation
	WEAVER_SIMULATION=20000 $(GO) test ./internal/systemtest/simulation -timeout=4h

soak-disk: ## Every write and sync of the disk faults, every power cut
	WEAVER_DISK=full $(GO) test ./store/sqlite ./internal/disktest -run 'Disk|Power|Log|Limit|Sync|Images' -v -timeout=1h

soak-storm: ## 200 processes killed in the middle of work
	WEAVER_STORM=full $(GO) test ./internal/systemtest/soak -run '^TestKillStorm$$' -v -timeout=1h

soak-long: ## Twenty minutes of mixed load: goroutines, files, memory, log
	WEAVER_SOAK=20m $(GO) test ./internal/systemtest/soak -run '^TestLongRun$$' -v -timeout=1h

SOAK ?= 20
soak-race: ## The tests of stores and engine SOAK times (20) under the race detector
	@cc="$$(scripts/cc.sh)"; set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=$(SOAK) -timeout=4h ./store/... ./internal/engine/...

soak-guards: guards ## The same as make guards

# Flags, as in: make guards GUARDS='-only R7'
GUARDS ?=
.PHONY: guards
guards: ## Remove every guard of the rules, one at a time, and see a test fail
	$(GO) run ./internal/guards $(GUARDS)

# Flags and packages, as in: make mutants MUTANTS='-n 200 -seed 7 ./decide'
MUTANTS ?=
.PHONY: mutants
mutants: ## Change the code in small ways, a sample per package, and count what no test notices
	$(GO) run ./internal/mutants $(MUTANTS)

# Flags for the benchmarks, as in: make bench BENCH='-runs 1 -only noop'
BENCH ?=
.PHONY: bench
bench: ## Run the benchmarks, each beside a peer (module bench)
	@cc="$$(scripts/cc.sh)"; set -x; cd bench && CC="$$cc" CGO_ENABLED=1 $(GO) run -ldflags '-X github.com/ncruces/go-sqlite3/driver.driverName=' . $(BENCH)

CHECKS := fmt vet staticcheck errcheck errorlint ineffassign tidy
# What is checked must not depend on whether there is a C compiler.
$(CHECKS): export CGO_ENABLED := 0
.PHONY: check
check: $(CHECKS) ## Check everything that needs no run; `make fix` repairs formatting

.PHONY: fmt
fmt:
	@echo gofumpt
	@files="$$($(GO) run $(GOFUMPT) -l .)"; \
	if [ -n "$$files" ]; then printf 'not formatted, run make fix:\n%s\n' "$$files" >&2; exit 1; fi

.PHONY: vet
vet:
	@echo go vet
	$(call everywhere,$(GO) vet ./...)

# With "all" it also finds what nobody uses (U1000).
.PHONY: staticcheck
staticcheck:
	@echo staticcheck
	$(call everywhere,$(GO) run $(STATICCHECK) ./...)

.PHONY: errcheck
errcheck:
	@echo errcheck
	$(call everywhere,$(GO) run $(ERRCHECK) -exclude '$(CURDIR)/scripts/errcheck.txt' ./...)

.PHONY: errorlint
errorlint:
	@echo errorlint
	$(call everywhere,$(GO) run $(ERRORLINT) -errorf ./...)

.PHONY: ineffassign
ineffassign:
	@echo ineffassign
	$(call everywhere,$(GO) run $(INEFFASSIGN) ./...)

.PHONY: tidy
tidy:
	@echo go mod tidy
	$(call everywhere,$(GO) mod tidy -diff)

.PHONY: fix
fix: ## Format the code and tidy the modules
	$(GO) run $(GOFUMPT) -w .
	$(call everywhere,$(GO) mod tidy)
