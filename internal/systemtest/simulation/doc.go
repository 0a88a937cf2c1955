// Package simulation runs a whole Weaver from one seed: three engines, their
// heartbeats and reapers, producers, operators and waiters over one store in
// memory, in one testing/synctest bubble. It has tests only.
//
// Beside its engine a process has transactions of its user, which commit or do not,
// and those of steps; they take turns with the engine's calls as they do on SQLite.
// Some tasks are of a type that no engine knows and stand under keys of others.
//
// Every call of the store, every begin and end of a piece of work and every
// notice of a commit first waits at one gate. When no goroutine can go on, the
// simulation lets exactly one of the waiting pass, chosen by a seeded generator
// from a sorted list, or lets time pass. So the interleaving is a function of the
// seed, and a failure is repeated by its seed alone.
//
// On the way calls are slow, fail, lose their answers, or are carried out long
// after their caller gave up; notices are lost, doubled and late; processes
// freeze for longer than their leases last, die, stop and start again; the
// clocks of workers are off by hours.
//
// Handlers wait for signals, which come before, while and after they wait, call
// children, race waits against each other, decompose and spend; operators cancel,
// retry and repeat such tasks, pause them and their types, and raise the budgets of
// their jobs (wait_test.go). Steps have undos, which fail, and some for good; no undo runs
// beside a handler of its task (undo_test.go).
//
// What holds for every seed is in checker_test.go and invariant_test.go. The
// package shows nothing about a real store: it runs the engine on memstore.
package simulation
