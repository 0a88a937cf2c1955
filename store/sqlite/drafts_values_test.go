package sqlite_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The inputs of unstored children are walked and replaced like others.
func TestDraftsAreWalked(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	f := fileFixture(t)
	c := f.parentOf()
	f.dieAfter(1)
	fin := f.decomposing(c, task.JoinComplete, 7*rules.MaxMoves)
	if got, err := f.db.Finish(f.Context(), fixNS, fin); err != nil || got[0].Err != nil {
		f.Fatalf("Finish: %+v, %v", got, err)
	}
	f.db.OnCommit(nil)
	walked := func() (drafts []store.StoredValue) {
		for after := ""; ; {
			values, next, err := f.values(after)
			if err != nil {
				f.Fatal(err)
			}
			for _, v := range values {
				if v.Kind == store.ValueDraft {
					drafts = append(drafts, v)
				}
			}
			if after = next; after == "" {
				return drafts
			}
		}
	}
	before := walked()
	left := f.count("SELECT sum(children) FROM weaver_drafts")
	if len(before) != left || left < 5*rules.MaxMoves {
		f.Fatalf("of %d children that are not stored %d were walked", left, len(before))
	}
	var swaps, stale []store.ValueSwap
	for i, v := range before {
		if v.Of != fin.Children[0].Type || v.Name != c.Task.ID.String() {
			f.Fatalf("a child is walked as %+v", v)
		}
		s := store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: json.RawMessage(fmt.Sprint(i))}
		swaps = append(swaps, s)
		s.New = json.RawMessage(`"stale"`)
		stale = append(stale, s)
	}
	if n, err := f.swap(swaps); n != len(swaps) || err != nil {
		t.Fatalf("%d of %d were replaced, %v", n, len(swaps), err)
	}
	if n, err := f.swap(stale); n != 0 || err != nil {
		t.Errorf("%d that had changed were replaced, %v", n, err)
	}
	for i, v := range walked() {
		if string(v.Value) != fmt.Sprint(i) {
			f.Fatalf("child %d has the input %s", i, v.Value)
		}
	}
	f.elsewhere().reapChores()
	if n := f.count("SELECT count(*) FROM weaver_drafts"); n != 0 {
		f.Fatalf("%d rows of drafts are left", n)
	}
	if n := f.count("SELECT count(*) FROM weaver_tasks WHERE input NOT LIKE '{%'"); n != len(swaps) {
		t.Errorf("%d children have the new input, want %d", n, len(swaps))
	}
	if n, err := f.swap(stale); n != 0 || err != nil {
		t.Errorf("%d of children that are stored now were replaced, %v", n, err)
	}
	f.chores()
}

// values reads a page of the stored values.
func (f *fixture) values(after string) (values []store.StoredValue, next string, err error) {
	_, next, err = f.db.RewriteValues(f.Context(), fixNS, after, 0, func(page []store.StoredValue) ([]store.ValueSwap, error) {
		values = page
		return nil, nil
	})
	return values, next, err
}

// swap replaces values.
func (f *fixture) swap(swaps []store.ValueSwap) (int, error) {
	n, _, err := f.db.RewriteValues(f.Context(), fixNS, "", 1, func([]store.StoredValue) ([]store.ValueSwap, error) { return swaps, nil })
	return n, err
}
