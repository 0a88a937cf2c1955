// Package soak runs Weaver under stress: real processes on one file that are
// killed at any moment, and one process under load for a long time. It has
// tests only.
//
// What holds for every test here: it runs on a file with synchronous FULL, in
// real time, and what it checks was written outside of the engine
// (a log of function starts, files of acknowledged ids and of transactions that the
// user committed or rolled back, tables of the user).
// Speed is measured and printed, never checked. A short size runs with every
// `go test`, the full one when an environment variable asks for it:
//
//   - TestKillStorm with WEAVER_STORM=full: 200 kills over 5,000 tasks and a job
//     of 500. WEAVER_STORM_SEED sets the seed of the schedule of kills.
//   - TestLayers with WEAVER_LAYERS=full: a job of 10,000 tasks in 100 layers, and
//     10 kills; the same seed.
//   - TestLongRun with WEAVER_SOAK=20m: a steady load for that long.
//
// All need a longer -timeout than the default then, and -v shows what they
// measured. With -artifacts the database, the step log and the stderr of the
// processes are kept.
//
// It is no place for a store's or the engine's own tests: a defect found here
// is first reproduced in the suite of the package that has it.
package soak
