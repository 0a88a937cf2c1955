//go:build race

package weaver_test

// underRace has most tests run on the memory store: SQLite takes two seconds for each
// under the race detector, which sees it in store/sqlite and internal/systemtest.
const underRace = true
