// Package soak runs Weaver under stress: real processes on one file that are killed at any moment, and one process
// under load for a long time. It contains only tests.
//
// Every test runs on a file with synchronous FULL, in real time. It checks evidence written outside the engine: a log
// of function starts, files of acknowledged IDs and of the user's committed and rolled back transactions, and tables
// of the user. Speed is measured and printed, never checked. A short size runs with every `go test`, the full one
// with an environment variable:
//
//   - TestKillStorm with WEAVER_STORM=full: 200 kills over 5,000 tasks and a job
//     of 500. WEAVER_STORM_SEED sets the seed of the schedule of kills.
//   - TestLayers with WEAVER_LAYERS=full: a job of 10,000 tasks in 100 layers, and
//     10 kills; the same seed.
//   - TestLongRun with WEAVER_SOAK=20m: a steady load for that long.
//
// The full sizes need a longer -timeout than the default; -v shows the measurements. With -artifacts the database,
// the step log and the stderr of the processes are kept.
//
// Tests of a store or the engine alone belong elsewhere: a defect found here is first reproduced in the suite of the
// package that has it.
package soak
