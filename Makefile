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
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the example that needs nothing but Go (examples/stdlib)
	$(GO) run ./examples/stdlib

.PHONY: test
test: ## Run all tests, and build for the browser (js/wasm)
	$(GO) test -shuffle=on ./...

.PHONY: race
race: ## Run all tests under the race detector, concurrent scenes at a fraction of their size
	@cc="$$(scripts/cc.sh)"; set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout=30m ./...

SOAK ?= 20
.PHONY: soak
soak: ## Run the tests of stores and engine SOAK times (20) under the race detector
	@cc="$$(scripts/cc.sh)"; set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=$(SOAK) -timeout=4h ./store/... ./internal/engine/...

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
