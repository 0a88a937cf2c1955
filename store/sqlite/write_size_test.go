package sqlite_test

import (
	"os"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The reads and writes of a claim, and of the end of a holder, do not depend on the number of
// due or waiting rows of a concurrency key. The test uses 100,000 rows with WEAVER_READS=full.
func TestClaimsBesideAKeyDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	many := 3_000
	if os.Getenv("WEAVER_READS") == "full" {
		many = 100_000
	}
	few := writeStepsBeside(t, 1_000)
	for what, steps := range writeStepsBeside(t, many) {
		// A few steps depend on the order of IDs.
		if steps > few[what]+100 || steps == 0 {
			t.Errorf("%s takes %d steps beside %d rows and %d beside 1,000", what, steps, many, few[what])
		}
	}
}

// writeStepsBeside returns the writer's steps for operations next to this number of rows of a
// key.
func writeStepsBeside(t *testing.T, rows int) map[string]int {
	t.Helper()
	steps := make(map[string]int)
	count := func(f *fixture, what string, do func()) {
		t.Helper()
		if _, err := f.db.WriteSteps(t.Context()); err != nil {
			t.Fatal(err)
		}
		do()
		n, err := f.db.WriteSteps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		steps[what] = n
	}
	keyed := func(limit int) func(*task.New) {
		return func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "k", limit }
	}
	fill := func(f *fixture, change ...func(*task.New)) {
		for left := rows; left > 0; left -= 1000 {
			f.enqueue(min(left, 1000), change...)
		}
	}
	ask := func(f *fixture, n int, want int) store.ClaimResult {
		t.Helper()
		got, err := f.db.Claim(t.Context(), fixNS, fixClaim("w", n))
		if err != nil || len(got.Tasks) != want {
			t.Fatalf("the claim got %d tasks and %v, want %d", len(got.Tasks), err, want)
		}
		return got
	}
	fresh := func(limit int) (*fixture, store.Claimed) {
		f := memoryFixture(t)
		f.enqueue(1, keyed(limit))
		holder := f.claim("w", 1)[0]
		return f, holder
	}
	unserved := func(n *task.New) { n.Type = "acme.test.unserved.v1" }

	f, _ := fresh(1)
	fill(f, keyed(1))
	count(f, "a claim beside due rows over the cap", func() { ask(f, 10, 0) })

	f, holder := fresh(1)
	fill(f, keyed(1), unserved)
	f.enqueue(1, keyed(1))
	ask(f, 10, 0)
	count(f, "the end of a holder beside due rows of a type that no worker serves", func() { f.finish(holder) })
	count(f, "a claim of the waiter that it woke", func() { ask(f, 10, 1) })

	f, holder = fresh(1)
	fill(f, keyed(1))
	for ask(f, 100, 0).Stopped {
		// until all wait
	}
	count(f, "the end of a holder beside waiters", func() { f.finish(holder) })
	count(f, "a claim of the oldest of them", func() { ask(f, 10, 1) })

	f, _ = fresh(1_000_000)
	fill(f, keyed(1_000_000), unserved)
	f.enqueue(1, keyed(1_000_000))
	count(f, "a claim beside due rows of a key with room", func() { ask(f, 10, 1) })

	f = memoryFixture(t)
	fill(f, func(n *task.New) { n.ExpireAfter = time.Microsecond })
	count(f, "a claim beside due rows past their deadline", func() { ask(f, 10, 0) })
	full := fixClaim("w", 10)
	full.IDs = []task.ID{f.ids.New()}
	count(f, "a claim by a hint beside them", func() {
		if _, err := f.db.Claim(t.Context(), fixNS, full); err != nil {
			t.Fatal(err)
		}
	})
	return steps
}
