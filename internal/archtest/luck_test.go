package archtest_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayTakeTime maps a function of a test to the reason why it waits or judges in real time. A machine under load is
// slow, so real time proves nothing: wait for an event, count, or use a bubble. The list may only shrink.
var mayTakeTime = map[string]string{
	"builtin/TestRunSlowListener":                               "the pipe of a command that is gone stays open for a second",
	"internal/attemptlog/TestRotation":                          "a file was made a minute older: it is that old at least",
	"internal/clitest/apart":                                    "signals within half a second count as one",
	"internal/pgtest/pause":                                     "polls what tells nobody",
	"internal/systemtest/limits/handle":                         "tasks overlap",
	"internal/systemtest/limits/run":                            "workers are killed a second apart",
	"internal/systemtest/saga/partner.ServeHTTP":                "one answer in ten is late, so that its caller may be killed meanwhile",
	"internal/systemtest/saga/storm":                            "workers are killed a second apart",
	"internal/systemtest/schedules/handle":                      "a run takes longer than its schedule's period, in one case of four",
	"internal/systemtest/schedules/storm":                       "workers are killed a second apart, and none runs for four",
	"internal/systemtest/fleet/clients.repeat":                  "the API and the database are restarted meanwhile",
	"internal/systemtest/fleet/clients.run":                     "clients enqueue at a rate",
	"internal/systemtest/fleet/fleet.storm":                     "processes are killed a second apart",
	"internal/systemtest/fleet/work":                            "a process tells its counts until it is killed",
	"internal/systemtest/orders/child":                          "the database is restarted meanwhile",
	"internal/systemtest/orders/partner.ServeHTTP":              "one answer in five is late",
	"blob/s3/faulty.ServeHTTP":                                  "delays requests",
	"internal/s3test/Gateway.start":                             "the server listens some time after it says so",
	"internal/systemtest/orders/storm.accept":                   "the database is restarted meanwhile",
	"internal/systemtest/orders/storm.disturb":                  "workers are killed at intervals",
	"internal/systemtest/crossing/TestCrossing":                 "plays for a time, and until it has seen enough",
	"internal/systemtest/crossing/play":                         "plays for a time",
	"internal/systemtest/events/wait":                           "readers are cut after random times",
	"internal/systemtest/leak/leakCases":                        "a handler returns long after its context ended",
	"internal/systemtest/soak/TestBulkRetryThroughKills":        "kills after random times",
	"internal/systemtest/soak/killLayers":                       "kills after random times",
	"internal/systemtest/soak/pause":                            "loads after random times",
	"internal/systemtest/soak/probe.soon":                       "dies after a random time",
	"internal/systemtest/soak/producer.acknowledged":            "dies after a random time",
	"internal/systemtest/soak/soak.every":                       "loads at intervals",
	"internal/systemtest/soak/soak.sample":                      "plays for a time, and until it has enough samples",
	"internal/systemtest/tab/TestE2EAsleep":                     "the machine sleeps for longer than a lease",
	"internal/systemtest/soak/soak.sampleNow":                   "a sample has its time",
	"internal/systemtest/soak/storm.await":                      "kills after a random time, if nothing happens before",
	"internal/systemtest/soak/storm.carryOut":                   "kills after a random time",
	"internal/systemtest/soak/visits.visit":                     "the evidence has how long a transaction was waited for",
	"store/postgres/TestInTxTellsWithItsCommit":                 "50 ms are between two notices: the longer it takes, the more may come",
	"store/postgres/TestNoMoreThanTwentyNotices":                "50 ms are between two notices: the longer it takes, the more may come",
	"store/postgres/eventually":                                 "polls what tells nobody",
	"store/postgres/lasts":                                      "work that takes a while, so that it is met",
	"store/postgres/paced":                                      "50 ms are between two notices",
	"store/postgres/pause":                                      "outages between processes",
	"store/postgres/testLostDirectWay":                          "an outage between processes lasts for 5 s at least",
	"store/postgres/internal/conn/TestSilentWhileIdle":          "pgxpool asks connections that were idle for a second",
	"store/sqlite/TestSlowStatementsEndWithACallersTransaction": "a statement does not tell that it runs",
	"store/storetest/env.isTold":                                "nothing tells when a worker's row says that it is idle",
	"weavertest/clock.use":                                      "in the bubble of its caller",
	"weavertest/failing":                                        "a handler, in a bubble",
}

// TestNoSleep forbids waits and judgements in real time. Time is fake in testing/synctest bubbles, so tests may use
// it there. Benchmarks measure it.
func TestNoSleep(t *testing.T) {
	t.Parallel()
	dirs := make(map[string][]*file)
	for _, f := range goFiles(t) {
		dirs[path.Dir(f.path)] = append(dirs[path.Dir(f.path)], f)
	}
	found := make(map[string]string) // function → place where it takes time
	for dir, files := range dirs {
		bubbles := bubblesOf(files)
		for _, f := range files {
			test := f.isTest() || f.under(suites)
			for _, decl := range f.ast.Decls {
				ast.Inspect(decl, func(n ast.Node) bool {
					switch name := declName(decl); {
					case n == nil || isMessage(n):
						return false
					case test && (bubbles.in(n) || strings.HasPrefix(name, "Benchmark")):
					case selects(n, "time", "Sleep"), test && (waits(n) || judgesTime(n)):
						found[path.Join(dir, name)] += " " + f.at(n)
					}
					return true
				})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if mayTakeTime[name] == "" {
			t.Errorf("%s takes real time:%s: in code wait for a timer or the context's end, whichever comes first; "+
				"in a test wait for an event, count, or use testing/synctest", name, found[name])
		}
	}
	for name := range mayTakeTime {
		if found[name] == "" {
			t.Errorf("%s takes no real time: take it out of mayTakeTime", name)
		}
	}
}

// isMessage reports whether n is a call that creates a message.
func isMessage(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf"}, sel.Sel.Name)
}

// waits reports whether n waits in real time, except for a timeout that only ends a hanging test.
func waits(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	return ok && slices.ContainsFunc([]string{"After", "AfterFunc", "NewTicker", "NewTimer", "Tick"}, func(name string) bool {
		return selects(call.Fun, "time", name)
	}) && !isLong(call.Args[0])
}

// isLong reports whether a duration is written in minutes, or as ten seconds or more.
func isLong(d ast.Expr) bool {
	n := 1
	if product, ok := d.(*ast.BinaryExpr); ok && product.Op == token.MUL {
		if factor, ok := product.X.(*ast.BasicLit); ok {
			n, _ = strconv.Atoi(factor.Value)
		}
		d = product.Y
	}
	return selects(d, "time", "Minute") || selects(d, "time", "Hour") || selects(d, "time", "Second") && n >= 10
}

// judgesTime reports whether n compares a time with the current time.
func judgesTime(n ast.Node) bool {
	if selects(n, "time", "Since") || selects(n, "time", "Until") {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"After", "Before", "Compare", "Equal", "Sub"}, method.Sel.Name) {
		return false
	}
	isNow := func(n ast.Node) bool { return selects(n, "time", "Now") }
	return contains(method.X, isNow) || slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return contains(arg, isNow) })
}

// declName returns the name of a function, with the type of its receiver, or the first name of another declaration.
func declName(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return receiver(d) + "." + d.Name.Name
		}
		return d.Name.Name
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}
