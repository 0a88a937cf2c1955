package sqlite_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The namespaces of the cursor's stores: the queried one, and one whose IDs lie between its
// IDs.
const (
	cursorHere  = "acme-here"
	cursorThere = "acme-there"
)

// cursorStores returns two stores with the same 24 tasks and 8 jobs, alternately here and
// there, and the IDs of those here, newest first.
func cursorStores(f *testing.F) (stores map[string]store.Store, tasks, jobs []task.ID) {
	f.Helper()
	db, err := sqlite.OpenMemory(f.Context())
	if err == nil {
		err = db.Migrate(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	stores = map[string]store.Store{"memstore": memstore.New(), "sqlite": db}
	ids := task.NewIDs(strings.NewReader(strings.Repeat("a seed of ten", 100)))
	for i := range 16 {
		ns := []string{cursorHere, cursorThere}[i%2]
		sub := store.Submission{Tasks: []task.New{{
			ID: ids.New(), Type: fixType, Queue: []string{"red", "blue"}[i/2%2], Input: json.RawMessage(`1`), SchemaVersion: 1, Priority: 5, MaxAttempts: 1, Backoff: 1e9, BackoffMax: 1e9,
		}}}
		if i%4 < 2 {
			sub.Job = &task.NewJob{ID: ids.New(), Name: "job"}
			sub.Tasks[0].Node = "node"
		}
		for _, s := range stores {
			if _, err := s.Enqueue(f.Context(), ns, nil, sub); err != nil {
				f.Fatal(err)
			}
		}
		if ns != cursorHere {
			continue
		}
		tasks = append(tasks, sub.Tasks[0].ID)
		if sub.Job != nil {
			jobs = append(jobs, sub.Job.ID)
		}
	}
	slices.Reverse(tasks)
	slices.Reverse(jobs)
	return stores, tasks, jobs
}

// Any cursor leads to ErrBadCursor, or to the older entries of this namespace, the same from
// every store. A cursor returned by a list leads to every task once.
func FuzzCursor(f *testing.F) {
	stores, tasks, jobs := cursorStores(f)
	for _, after := range []string{
		"", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "80000000000000000000000000", "00000000000000000000000001", "00000000000000000000000000",
		"01arz3ndektsv4rrffq69g5fav", "not-a-cursor", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FA\x00", "\xff", "' OR 1=1 --",
	} {
		f.Add(after, uint8(3), uint8(25), byte('0'), uint8(2), "red")
	}
	f.Add("", uint8(0), uint8(0), byte('7'), uint8(0), "")
	f.Add("", uint8(1), uint8(9), byte('U'), uint8(255), "blue")
	f.Add("", uint8(200), uint8(10), byte(0), uint8(1), "green")
	f.Fuzz(func(t *testing.T, after string, which, place uint8, b byte, limit uint8, queue string) {
		// A real cursor with one byte changed.
		changed := []byte(tasks[int(which)%len(tasks)].String())
		changed[int(place)%len(changed)] = b
		for _, after := range []string{after, string(changed)} {
			var want []task.ID
			bad := false
			before, err := task.ParseID(after)
			if bad = err != nil && after != ""; !bad {
				want = slices.DeleteFunc(slices.Clone(tasks), func(id task.ID) bool { return after != "" && id.Compare(before) >= 0 })
			}
			for name, s := range stores {
				f := store.Filter{Limit: int(limit) % 10, After: after}
				checkPages(t, name, bad, want, f.Limit, func(after string) ([]task.ID, string, error) {
					f.After = after
					list, next, err := s.List(t.Context(), cursorHere, f)
					return taskIDs(list), next, err
				}, after)

				wantJobs := slices.DeleteFunc(slices.Clone(jobs), func(id task.ID) bool { return after != "" && id.Compare(before) >= 0 })
				if bad {
					wantJobs = nil
				}
				checkPages(t, name+" jobs", bad, wantJobs, f.Limit, func(after string) ([]task.ID, string, error) {
					list, next, err := s.Jobs(t.Context(), cursorHere, store.JobFilter{Limit: f.Limit, After: after})
					var ids []task.ID
					for i := range list {
						ids = append(ids, list[i].ID)
					}
					return ids, next, err
				}, after)
			}
			// With a filter the stores read from other sources: they must agree.
			filtered := store.Filter{Limit: 1 + int(limit)%10, After: after, Queue: queue, States: []task.State{task.Ready, task.Pending}}
			mine, next, err := stores["sqlite"].List(t.Context(), cursorHere, filtered)
			model, wantNext, wantErr := stores["memstore"].List(t.Context(), cursorHere, filtered)
			if !slices.Equal(taskIDs(mine), taskIDs(model)) || next != wantNext || errors.Is(err, store.ErrBadCursor) != errors.Is(wantErr, store.ErrBadCursor) {
				t.Errorf("%+v: %v, %q, %v; the model says %v, %q, %v", filtered, taskIDs(mine), next, err, taskIDs(model), wantNext, wantErr)
			}
		}
	})
}

// checkPages reads all pages from a cursor on.
func checkPages(t *testing.T, name string, bad bool, want []task.ID, limit int, read func(after string) ([]task.ID, string, error), after string) {
	t.Helper()
	var got []task.ID
	for first := after; ; {
		page, next, err := read(after)
		if bad {
			if !errors.Is(err, store.ErrBadCursor) || page != nil || next != "" {
				t.Errorf("%s: the cursor %q answers %v, %q, %v", name, first, page, next, err)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: the cursor %q: %v", name, after, err)
			return
		}
		got = append(got, page...)
		if size := store.PageLimit(limit); len(page) > size || next != "" && len(page) < size {
			t.Errorf("%s: the cursor %q: a page of %d, %d were asked for, next %q", name, after, len(page), size, next)
			return
		}
		if len(got) > len(want) || next == "" {
			if !slices.Equal(got, want) {
				t.Errorf("%s: from the cursor %q on: %v\nwant %v", name, first, got, want)
			}
			return
		}
		after = next
	}
}

func taskIDs(list []task.Task) []task.ID {
	var ids []task.ID
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// Any file name leads to an error without remains, or to a database in the file of exactly
// this name. The user's own tables are in the same file, and it can be opened again.
func FuzzFileName(f *testing.F) {
	for _, name := range []string{
		"weaver.db", "", ".", "a\x00b", "..", "a b.db", "100%.db", "%41.db", "a?mode=memory", "a#b.db", "file:a.db", ":memory:", "file::memory:?cache=shared", "\xff.db", "é.db",
		"a\nb", "-wal", "a-wal", "a-journal", "'.db", "a\\b", "~", strings.Repeat("x", 240), strings.Repeat("x", 300), " ", "\t", "https:", "CON",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsAny(name, "/") || name == ".." {
			return // another folder
		}
		dir := t.TempDir()
		path := dir + string(filepath.Separator) + name
		db, err := sqlite.Open(t.Context(), path, sqlite.Synchronous(sqlite.SyncOff))
		if err == nil {
			err = db.Migrate(t.Context())
			if err == nil { // the user's own connections use a URI
				_, err = db.DB().ExecContext(t.Context(), "CREATE TABLE mine (x)")
			}
			err = errors.Join(err, db.Ready(t.Context()), db.Close())
		}
		entries, rerr := os.ReadDir(dir)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if err != nil {
			if len(entries) > 0 {
				t.Errorf("%q: %v, and %v was created", name, err, entries)
			}
			return
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), name) {
				t.Errorf("%q: %q was created", name, e.Name())
			}
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q was opened, but: %v", name, err)
		}
		again, err := sqlite.Open(t.Context(), path)
		if err == nil {
			_, err = again.DB().ExecContext(t.Context(), "SELECT x FROM mine")
			err = errors.Join(err, again.Ready(t.Context()), again.Close())
		}
		if err != nil {
			t.Errorf("%q cannot be opened again: %v", name, err)
		}
	})
}
