// Package simulation runs a whole Weaver from one seed: three engines with their heartbeats and reapers, producers,
// operators and waiters, over one store in memory, in one testing/synctest bubble. It contains only tests.
//
// In addition to its engine, a process has transactions of its user, which commit or roll back, and transactions of
// steps. They take turns with the engine's calls as on SQLite. Some tasks have a type that no engine knows and use
// keys of other tasks.
//
// Every store call, every begin and end of a piece of work and every notice of a commit first waits at one gate. When
// no goroutine can run, the simulation lets exactly one of the waiters pass, chosen by a seeded generator from a
// sorted list, or advances time. The interleaving is therefore a function of the seed, and the seed alone repeats a
// failure.
//
// On the way, calls are slow, fail, lose their answers, or run long after their caller gave up. Notices are lost,
// doubled and late. Processes freeze for longer than their leases last, die, stop and start again. The clocks of
// workers differ by hours.
//
// Handlers wait for signals, which arrive before, during and after the wait, call children, race waits against each
// other, decompose and spend. Operators cancel, retry and repeat such tasks, pause them and their types, and raise
// the budgets of their jobs (wait_test.go). Steps have undos, some of which fail, temporarily or permanently; no undo
// runs concurrently with a handler of its task (undo_test.go).
//
// The invariants of every seed are in checker_test.go and invariant_test.go. The package proves nothing about a real
// store: it runs the engine on memstore.
package simulation
