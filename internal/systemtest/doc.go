// Package systemtest groups the tests that run the whole of Weaver against an independent check. Each test has a
// package of its own:
//
//   - model compares random operations on a store with package memstore.
//   - crossing has many processes write the same tasks of one PostgreSQL at once.
//   - linearizability checks concurrent histories of store calls.
//   - sweep injects a fault at every store call of real engine work.
//   - simulation runs several engines in an order that one seed chooses.
//   - soak kills real processes, and keeps one under load for a long time.
//   - limits kills workers that start tasks under rates and limits.
//   - saga kills workers that charge and ship orders through failing services.
//   - events checks that readers see every event while processes are killed.
//   - fleet kills and restarts an API, workers, publishers, PostgreSQL, Redis and S3.
//   - web drives the dashboard in a browser.
//   - tab runs test binaries and programs in tabs of browsers.
//   - leak checks that a drained engine leaves no goroutine behind.
//
// A failing run prints its seed, which repeats it. Time is the fake clock of testing/synctest wherever a clock
// matters. A short size runs with every `go test`; a flag or an environment variable selects the long one
// (docs/reliability.md).
//
// The packages contain only tests, but firefox, which drives that browser for them. They are the only ones that import
// rapid, porcupine, goleak and chromedp. A defect found here is first reproduced in the suite of the package that has it.
package systemtest
