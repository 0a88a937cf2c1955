# Everything a developer does here. CI runs .ci/run, which runs test, check, race, wasm and e2e.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# The modules that have code: the product, the tests of the whole system, the
# plug-in for OpenTelemetry, and the benchmarks.
MODULES := . internal/systemtest otelweaver bench
# All tests run in one workspace, so that one go command keeps every core busy.
TESTED := ./... ./internal/systemtest/... ./otelweaver/...
IN_TESTS := GOWORK='$(CURDIR)/tools/tests.work' GO='$(GO)'
# The linters, in the versions of tools/go.mod (docs/adr/0010-tools-outside-go-mod.md).
TOOL := $(GO) tool -modfile='$(CURDIR)/tools/go.mod'

# $(call but,PACKAGES,FROM) lists the packages of FROM (./...) but some.
but = $$($(GO) list $(or $(2),./...) | grep -vxF -e none $(addprefix -e github.com/goweaver/weaver/,$(1)))
# What need not build for a system; everything else must. A browser has neither
# terminals nor signals.
NOT_js := cli cmd/weaver docs internal/clitest

# $(call everywhere,COMMAND) runs a command in every module that has code.
everywhere = @for m in $(MODULES); do (cd "$$m" && $(1)) || exit 1; done

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the example that needs nothing but Go (examples/stdlib)
	$(GO) run ./examples/stdlib

# The packages whose tests last longest come first, so that no core waits for them in the end.
LONGEST := ./store/postgres ./internal/clitest ./store/sqlite ./store/postgres/internal/session ./internal/systemtest/soak ./internal/systemtest/events

# While you work: go test -short ./... runs a part of it. It needs PostgreSQL: make services, once.
.PHONY: test
test: services ## Run all tests but those of `make e2e`
	$(IN_TESTS) scripts/gotest.sh -shuffle=on -timeout=45m $(LONGEST) ./internal/systemtest/web $(TESTED)

# Not a part of CI, which has no promtool; the Go tests of package cli check the names of the metrics there.
.PHONY: alarms
alarms: ## Test the alarms of deploy/prometheus with promtool (Debian package prometheus)
	@command -v promtool >/dev/null || { echo 'promtool is missing: sudo apt-get install -y --no-install-recommends prometheus' >&2; exit 1; }
	promtool check config --syntax-only deploy/prometheus/prometheus.yml
	promtool test rules deploy/prometheus/rules_test.yml

# Not a part of CI: it takes minutes, and needs root.
.PHONY: compose-test
compose-test: ## Play compose.yaml with a Docker daemon of its own and images made of this machine's programs (Linux, as root)
	@GO='$(GO)' scripts/compose-test.sh

.PHONY: versitygw
versitygw: ## Build the S3 server of soak-s3 and fleet-test if it is missing: four minutes of CPU
	@scripts/services.sh s3

.PHONY: services
services: ## Install what the tests start for themselves, PostgreSQL, PgBouncer, Redis and Chromium, if it is missing
	@scripts/services.sh

# Left out of `make race`, because they have no goroutines that share anything:
# pure functions over golden files and tables, the rules of archtest, the
# model, which calls the stores one operation at a time, and the browser, whose server runs what other tests run. Everything else runs
# in its race size (size_race_test.go), so a new package is in by default.
# Kill storms, whose processes run the code that the other tests run, are for soak-race.
# ALONE are long tests in which one goroutine does everything.
ALONE := TestNoOptionIsLostOverHTTP TestLongLists TestDocumentIsValid TestRequestReadsSoMuch TestRequestGzip \
	TestBittenJobsEndAsWholeOnes TestClaimsBesideAKeyDoNotGrow TestReadsOfOneDoNotGrow TestFullStore TestTheFileShrinks \
	TestAPageLooksAtABoundedNumberOfRows TestChildrenAreStoredInBites TestDecomposeIsBounded TestScanIsBounded TestPlans \
	FuzzFileName FuzzStoreURL TestColours TestCompleteWords TestNamesOfTasks \
	TestPowerFails TestPowerFailsOverANewFile TestPowerFailsAfterAFailedSync TestPowerFailsWithoutSyncs \
	TestNewFileOverADiskThatFails TestGarbledLog TestTruncatedLog TestWorkAfterATruncatedLog TestDraftsAreWalked \
	TestCollectInSets TestCollectInSetsLeavesDrafts TestCollectInSetsSeesAll TestCollectIsBounded TestBitesDoNotGrow \
	TestARangeOfTimeIsOfIDs TestNewLanesAmongMany TestAnOldFileDoesNotShrink TestManyDependentsAreLeftToReapers \
	TestVerbsBySets_AreThoseOneByOne TestVerbsBySets_OneAmongOthers TestManyAreCopied TestVeryManyAreCopied
# PROGRAMS are tests of the command that play an example or a document, or kill it: one program after another. soak-race runs them.
PROGRAMS := TestDocumentedCommands TestExample\w+ TestPages TestReadmePipeline TestPipelineBlocks TestS3 TestS3_Wrong \
	TestWhyAfterKill TestRunIsKilled\w* TestUndoIsKilled TestPostgresWorkerIsKilled
# CASES are cases of the conformance suite that try every verb in every situation, one call after another.
CASES := TestConformance/.*/Verbs/I3_every_verb TestConformanceFile/Verbs/I3_every_verb
STORMS := internal/systemtest/limits internal/systemtest/orders internal/systemtest/saga internal/systemtest/schedules
NO_RACE := decide internal/archtest internal/pipeline internal/systemtest/model internal/systemtest/web internal/text internal/typo task $(STORMS)
.PHONY: race
race: services ## Run the tests of everything that is concurrent under the race detector, in a smaller size
	@cc="$$(scripts/cc.sh)"; export $(IN_TESTS); set -x; CC="$$cc" CGO_ENABLED=1 scripts/gotest.sh -race -vet=off -shuffle=on -timeout=60m -skip='^($(subst $() ,|,$(ALONE) $(PROGRAMS)))$$|$(subst $() ,|,$(CASES))' $(LONGEST) $(call but,$(NO_RACE),$(TESTED))

# Each failure is a defect of the product or of the test. N is the number of
# runs of a package, P how many run at once; RACE=1 uses the race detector.
N ?= 10
P ?= 3
PKG ?= $(TESTED)
.PHONY: flakes
flakes: services ## Run every package N times, P at once, shuffled, on one core and two, and count what fails
	@$(IN_TESTS) N=$(N) P=$(P) RACE=$(RACE) scripts/flakes.sh $(PKG)

# The same task code runs in a browser tab. Nothing is run here: compiling, and
# linking the tests of the root package and of the embedded store, is the test.
# What the platform lacks goes behind a build tag, with a _js file beside it.
.PHONY: wasm
wasm: ## Build for the browser (js/wasm)
	GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) build $(call but,$(NOT_js))
	GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) test -vet=off -run '^$$' -exec true . ./store/sqlite

.PHONY: e2e
e2e: services ## Run the tests that build programs or write much (TestE2E…)
	@$(IN_TESTS) scripts/e2e.sh

# What takes long, each by itself: hours on two cores.
SOAKS := soak-model soak-sweep soak-simulation soak-disk soak-storm soak-layers soak-bulk soak-events soak-saga soak-schedules soak-limits soak-orders soak-death soak-plans soak-long soak-race soak-guards soak-web soak-tab soak-model-postgres soak-conformance soak-crossing soak-s3
.PHONY: soak $(SOAKS)
soak: $(SOAKS) ## Run everything in full size, for hours (docs/reliability.md); or one of soak-NAME

# A seed is printed when one fails; SEED=N plays it again.
SEED ?= 0
soak-model: ## 20,000 sequences of 100 operations on the model and on SQLite
	$(GO) test -C internal/systemtest ./model -run '^TestModel$$' -rapid.seed=$(SEED) -rapid.checks=20000 -rapid.steps=100 -timeout=4h

soak-model-postgres: services ## 2,000 sequences of 100 operations on the model and on PostgreSQL
	$(GO) test -C internal/systemtest ./model -run '^TestModelOnPostgres$$' -rapid.seed=$(SEED) -rapid.checks=2000 -rapid.steps=100 -timeout=4h

soak-conformance: services ## The whole conformance suite on both databases, on PostgreSQL with transactions of the size that users have; 10,000 enqueues beside rows of a user
	WEAVER_CONFORMANCE=full $(GO) test ./store/postgres ./store/sqlite -run '^Test(Conformance|ConformanceFile|TransactionalEnqueue)$$' -timeout=1h

soak-s3: versitygw ## The conformance suite of buckets on a real S3 server, also through a proxy that cuts, changes and loses
	WEAVER_TEST_S3=versitygw $(GO) test ./blob/s3 -run '^Test(Bucket|Faults)$$' -v -timeout=1h

.PHONY: fleet-test
fleet-test: services versitygw ## 50,000 tasks and a job of 1,000 through a fleet of processes on PostgreSQL, Redis and S3, killed and restarted
	WEAVER_E2E=1 WEAVER_FLEET=full $(GO) test -C internal/systemtest ./fleet -run '^TestE2EFleet$$' -v -count=1 -timeout=3h

soak-crossing: services ## Ten minutes of processes that write the same tasks on PostgreSQL at once
	WEAVER_CROSSING=10m $(GO) test -C internal/systemtest ./crossing -run '^TestCrossing$$' -v -timeout=1h

soak-sweep: services ## Every fault at every store call of every case, alone and in pairs
	WEAVER_SWEEP=full $(GO) test -C internal/systemtest ./sweep -run Sweep -v -timeout=6h

soak-simulation: ## 20,000 seeds of the deterministic simulation
	WEAVER_SIMULATION=20000 $(GO) test -C internal/systemtest ./simulation -timeout=4h

soak-disk: ## Every write and sync of the disk faults, every power cut
	WEAVER_DISK=full $(GO) test ./store/sqlite ./internal/faults/disktest -run 'Disk|Power|Log|Limit|Sync|Images' -v -timeout=1h

soak-storm: ## 200 processes killed in the middle of work
	WEAVER_STORM=full $(GO) test -C internal/systemtest ./soak -run '^TestKillStorm$$' -v -timeout=1h

soak-layers: services ## A job of 10,000 tasks in 100 layers, its worker killed ten times, on SQLite and on PostgreSQL
	WEAVER_LAYERS=full WEAVER_STORM_SEED=$(if $(filter-out 0,$(SEED)),$(SEED),1) $(GO) test -C internal/systemtest ./soak -run '^TestLayers' -v -timeout=1h

soak-bulk: ## 100,000 failed tasks retried by a query, the process that does it killed ten times
	WEAVER_BULK=full $(GO) test -C internal/systemtest ./soak -run '^TestBulkRetryThroughKills$$' -v -timeout=1h

soak-saga: services ## Orders that partners charge and ship, through 600 kills, on SQLite and on PostgreSQL
	WEAVER_SAGA=full $(GO) test -C internal/systemtest ./saga -v -timeout=1h

soak-schedules: services ## Schedules that fire five times per second in eight processes, 600 kills, on SQLite and on PostgreSQL
	WEAVER_SCHEDULES=full $(GO) test -C internal/systemtest ./schedules -v -timeout=2h

soak-web: ## The pages of the dashboard on both widths in both colours, and in Firefox
	@scripts/services.sh firefox
	WEAVER_WEB=full $(GO) test -C internal/systemtest ./web -v -timeout=30m

soak-tab: ## The whole conformance suite in a tab of Chromium and of Firefox, and a browser killed 50 times
	@scripts/services.sh firefox
	WEAVER_E2E=1 WEAVER_TAB=full $(GO) test -C internal/systemtest ./tab -v -count=1 -timeout=2h

soak-limits: services ## 100 keys with rates and a queue with a limit in sixteen processes, 300 kills, on SQLite and on PostgreSQL
	WEAVER_LIMITS=full $(GO) test -C internal/systemtest ./limits -v -timeout=2h

soak-orders: services ## 20,000 requests to a partner that fails after success, a worker killed each second, on SQLite and on PostgreSQL
	WEAVER_ORDERS=20000 $(GO) test -C internal/systemtest ./orders -v -timeout=2h

soak-events: services ## 100,000 events, 50 readers that are cut 20 times, their server killed, on SQLite and on PostgreSQL
	WEAVER_EVENTS=full $(GO) test -C internal/systemtest ./events -v -timeout=3h

soak-death: ## 300 workers on PostgreSQL killed: how long until others go on; outages, partitions, failover
	WEAVER_DEATH=full $(GO) test ./store/postgres -run '^TestDeath$$' -v -timeout=1h

soak-plans: services ## The plans of all statements in twelve states of a database
	WEAVER_PLANS=full $(GO) test ./store/postgres -run '^TestPlans$$' -v

soak-long: ## Twenty minutes of mixed load: goroutines, files, memory, log
	WEAVER_SOAK=20m $(GO) test -C internal/systemtest ./soak -run '^TestLongRun$$' -v -timeout=1h

SOAK ?= 20
soak-race: services ## The tests of stores, engine and root package SOAK times (20) under the race detector, the kill storms and the tests of the command once
	@cc="$$(scripts/cc.sh)"; set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=$(SOAK) -timeout=4h ./store/... ./internal/engine/... .
	@cc="$$(scripts/cc.sh)"; export $(IN_TESTS); set -x; CC="$$cc" CGO_ENABLED=1 $(GO) test -race -count=1 -timeout=1h $(addprefix ./,$(STORMS)) ./internal/clitest

soak-guards: guards ## The same as make guards

# Flags, as in: make guards GUARDS='-only R7'
GUARDS ?=
.PHONY: guards
guards: services ## Remove every guard of the rules, one at a time, and see a test fail
	$(GO) run ./internal/mutation/guards $(GUARDS)

# More flags, as in: make planted N=5 GUARDS='-only storm'
N ?= 20
.PHONY: planted
planted: services ## Plant a defect for each proof of docs/reliability.md and see it found in N runs of N
	$(IN_TESTS) $(GO) run ./internal/mutation/guards -proofs -repeat $(N) $(GUARDS)

# Flags and packages, as in: make mutants MUTANTS='-n 200 -seed 7 ./decide'
MUTANTS ?=
.PHONY: mutants
mutants: services ## Change the code in small ways, a sample per package, and count what no test notices
	$(GO) run ./internal/mutation/mutants $(MUTANTS)

# Flags for the benchmarks, as in: make bench BENCH='-runs 1 -only noop'
BENCH ?=
.PHONY: bench
bench: ## Run the benchmarks, each beside a peer (module bench)
	@cc="$$(scripts/cc.sh)"; set -x; cd bench && CC="$$cc" CGO_ENABLED=1 $(GO) run -ldflags '-X github.com/ncruces/go-sqlite3/driver.driverName=' . $(BENCH)

.PHONY: bench-web
bench-web: services ## Measure the pages of the dashboard in Chromium
	$(IN_TESTS) $(GO) test -C internal/systemtest ./web -run '^$$' -bench 'Pages|Storm' -benchtime 20x -timeout=30m

.PHONY: release
release: ## Check that VERSION (v0.1.0) can be released, and print the commands that tag it
	@$(GO) run ./internal/release $(VERSION)

# Needs Go alone, and writes the same bytes on every machine (docs/adr/0073-dashboard.md).
.PHONY: ui
ui: ## Build the dashboard's assets from dashboard/ui
	@scripts/ui.sh build

.PHONY: ui-vendor
ui-vendor: ## Fetch the libraries of the dashboard anew (npm)
	@scripts/ui.sh vendor

CHECKS := fmt vet vet-platforms staticcheck errcheck errorlint ineffassign tidy ui-check
# What is checked must not depend on whether there is a C compiler.
$(CHECKS): export CGO_ENABLED := 0
.PHONY: check $(CHECKS)
check: $(CHECKS) ## Check everything that needs no run; `make fix` repairs formatting

fmt:
	@echo gofumpt
	@files="$$($(TOOL) gofumpt -l .)"; \
	if [ -n "$$files" ]; then printf 'not formatted, run make fix:\n%s\n' "$$files" >&2; exit 1; fi

vet:
	@echo go vet
	$(call everywhere,$(GO) vet ./...)

# The systems that are built but not run here, tests included.
PLATFORMS := windows/amd64 darwin/arm64 freebsd/amd64 js/wasm
vet-platforms:
	@$(foreach p,$(PLATFORMS),echo 'go vet ($(p))'; \
	GOOS=$(patsubst %/,%,$(dir $(p))) GOARCH=$(notdir $(p)) $(GO) vet $(call but,$(NOT_$(patsubst %/,%,$(dir $(p)))));)

# With "all" it also finds what is never used (U1000).
staticcheck:
	@echo staticcheck
	$(call everywhere,$(TOOL) staticcheck ./...)

errcheck:
	@echo errcheck
	$(call everywhere,$(TOOL) errcheck -exclude '$(CURDIR)/scripts/errcheck.txt' ./...)

errorlint:
	@echo errorlint
	$(call everywhere,$(TOOL) go-errorlint -errorf ./...)

ineffassign:
	@echo ineffassign
	$(call everywhere,$(TOOL) ineffassign ./...)

tidy:
	@echo go mod tidy
	$(call everywhere,$(GO) mod tidy -diff)
	@cd tools && $(GO) mod tidy -diff

# Compares the committed assets with a new build of dashboard/ui, and checks its types (TypeScript; npm fetches it).
ui-check:
	@echo 'dashboard: assets and types'
	@scripts/ui.sh check
	@scripts/ui.sh types

.PHONY: fix
fix: ## Format the code and tidy the modules
	$(TOOL) gofumpt -w .
	$(call everywhere,$(GO) mod tidy)
	cd tools && $(GO) mod tidy
