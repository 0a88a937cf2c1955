package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

const rareType, otherType = "acme.test.rare.v1", "acme.test.other.v1"

// listed returns a store of n tasks, of which every hundredth has a rare type, and n jobs.
func listed(t *testing.T, looks, n int) (f *fixture, rare []task.ID) {
	t.Helper()
	f = fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.ListLooks(looks)))
	sub := f.drafts(n)
	for i := range sub.Tasks {
		if i%100 == 50 {
			sub.Tasks[i].Type = rareType
			rare = append(rare, sub.Tasks[i].ID)
		}
	}
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	for range n / 5 {
		sub := f.drafts(1)
		sub.Tasks[0].Node, sub.Job = "a", &task.NewJob{ID: f.ids.New(), Name: "some"}
		if err := f.submit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(rare)
	return f, rare
}

// A page reads a bounded number of rows, for any number of rows and matches. Its cursor
// continues after the rows read.
func TestAPageLooksAtABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	filters := map[string]store.Filter{
		"a type that no task has":  {Types: []string{otherType}},
		"two such types":           {Types: []string{otherType, "acme.test.third.v1"}},
		"a rare type":              {Types: []string{rareType}},
		"two types, one rare":      {Types: []string{rareType, otherType}},
		"a queue":                  {Queue: "none"},
		"a state":                  {States: []task.State{task.Succeeded}},
		"ready tasks of a type":    {States: []task.State{task.Ready}, Types: []string{otherType}},
		"ready tasks of a queue":   {States: []task.State{task.Ready}, Queue: "none"},
		"pending tasks of a label": {States: []task.State{task.Pending}, Labels: map[string]string{"team": "red"}},
	}
	const looks = 200
	few, _ := listed(t, looks, 1000)
	many, rare := listed(t, looks, 3000)
	steps := func(f *fixture, read func() error) int {
		t.Helper()
		f.db.ReadSteps()
		if err := read(); err != nil {
			t.Fatal(err)
		}
		return f.db.ReadSteps()
	}
	compare := func(what string, read func(f *fixture) error) {
		t.Helper()
		a, b := steps(few, func() error { return read(few) }), steps(many, func() error { return read(many) })
		if b > a+a/10 { // they did not find the same tasks
			t.Errorf("a page of %s takes %d steps among 1,000 tasks and %d among 3,000", what, a, b)
		}
	}
	for what, filter := range filters {
		compare(what, func(f *fixture) error { _, _, err := f.db.List(t.Context(), fixNS, filter); return err })
		got, pages := many.pages(filter)
		want := []task.ID(nil)
		if slices.Contains(filter.Types, rareType) {
			want = rare
		}
		if !slices.Equal(got, want) {
			t.Errorf("the pages of %s show %d tasks, want each of %d once, newest first", what, len(got), len(want))
		}
		if limit := 3600/(looks/2) + len(want); pages > limit {
			t.Errorf("%s takes %d pages, want at most %d", what, pages, limit)
		}
	}
	compare("jobs of a name", func(f *fixture) error {
		_, _, err := f.db.Jobs(t.Context(), fixNS, store.JobFilter{Name: "none"})
		return err
	})
	jobs := 0
	for after := ""; ; {
		page, next, err := many.db.Jobs(t.Context(), fixNS, store.JobFilter{Name: "some", Limit: 7, After: after})
		if err != nil {
			t.Fatal(err)
		}
		jobs += len(page)
		if after = next; next == "" {
			break
		}
	}
	if jobs != 600 {
		t.Errorf("the pages show %d jobs, want 600", jobs)
	}
}

// pages follows the cursor to the end.
func (f *fixture) pages(filter store.Filter) (all []task.ID, pages int) {
	f.Helper()
	seen := make(map[string]bool)
	for {
		list, next, err := f.db.List(f.Context(), fixNS, filter)
		if err != nil {
			f.Fatal(err)
		}
		pages++
		for i := range list {
			all = append(all, list[i].ID)
		}
		if next == "" {
			return all, pages
		}
		if filter.After = next; seen[next] {
			f.Fatal(fmt.Sprint("a cursor came twice: ", next))
		}
		seen[next] = true
	}
}

// A range of enqueue times costs only the tasks in it: neither newer nor older tasks are read.
func TestARangeOfTimeIsOfIDs(t *testing.T) {
	t.Parallel()
	const looks = 100
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.ListLooks(looks)))
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sub := f.drafts(3000)
	for i := range sub.Tasks {
		sub.Tasks[i].ID, _ = task.FirstID(from.Add(time.Duration(i) * time.Second))
	}
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	for what, filter := range map[string]store.Filter{
		"all":       {},
		"ready":     {States: []task.State{task.Ready}},
		"of a type": {Types: []string{sub.Tasks[0].Type}},
	} {
		filter.CreatedAfter, filter.CreatedBefore = from.Add(1500*time.Second), from.Add(1510*time.Second)
		got, next, err := f.db.List(t.Context(), fixNS, filter)
		if err != nil || next != "" || len(got) != 10 || got[9].ID != sub.Tasks[1500].ID {
			t.Errorf("%s in ten seconds: %d tasks, cursor %q, %v; want the ten in one page", what, len(got), next, err)
		}
	}
}
