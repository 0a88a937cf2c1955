//go:build race

package weaver_test

// underRace makes most tests run on the memory store: SQLite takes two seconds per test under the race
// detector, which covers it in store/sqlite and internal/systemtest.
const underRace = true
