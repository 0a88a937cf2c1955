package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A program that starts after the machine's clock was set back continues from the time in the
// file, and so does a program that has the file open.
func TestClockIsKeptInTheFile(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(f *fixture){
		"enqueue": func(f *fixture) { f.enqueue(100) },
		"InTx": func(f *fixture) {
			tx := f.begin()
			if _, err := f.db.Enqueue(f.Context(), fixNS, sqlite.Tx(tx), f.drafts(100)); err != nil {
				f.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "w.db")
				first := fixtureOn(t, openFile(t, path))
				open := fixtureOn(t, openFile(t, path, sqlite.ClockShifted(-time.Hour)))
				time.Sleep(time.Minute)
				write(first)
				time.Sleep(700 * time.Millisecond)
				write(first)
				if n := len(open.claim("w", 50)); n != 50 {
					t.Errorf("a store that was open claimed %d tasks, want 50", n)
				}
				shut(t, open.db)
				shows := func(f *fixture) time.Time {
					snap, err := f.db.Snapshot(t.Context(), fixNS)
					if err != nil {
						t.Fatal(err)
					}
					return snap.Now
				}
				later := fixtureOn(t, openFile(t, path, sqlite.ClockShifted(-time.Hour)))
				if got, want := shows(later), shows(first); got.Before(want) {
					t.Errorf("a store opened later shows %v, which is before the %v that was shown", got, want)
				}
				if n := len(later.claim("w", 200)); n != 150 {
					t.Errorf("a store opened later claimed %d tasks, want 150", n)
				}
			})
		})
	}
}

// thirtyYears moves the clock of a bubble, which begins in 2000, to a plausible time.
const thirtyYears = 30 * 365 * 24 * time.Hour

func at(due time.Time) func(*task.New) { return func(n *task.New) { n.At = due } }

// A clock that was once years ahead is neither followed nor stored.
func TestClockWasWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "w.db")
		wrong := fixtureOn(t, openFile(t, path, sqlite.ClockShifted(thirtyYears+10*365*24*time.Hour)))
		wrong.enqueue(1)
		shut(t, wrong.db)
		right := fixtureOn(t, openFile(t, path, sqlite.ClockShifted(thirtyYears)))
		if _, err := right.db.Enqueue(t.Context(), fixNS, nil, right.drafts(1, at(time.Now().Add(thirtyYears+24*time.Hour)))); err != nil {
			t.Fatal(err)
		}
		if n := len(right.claim("w", 50)); n != 1 {
			t.Errorf("%d tasks were claimed, want the one that is due: another is for tomorrow", n)
		}
		if list := right.db.Warnings(t.Context()); len(list) == 0 || list[0].Key != "clock was wrong" {
			t.Errorf("the warnings are %v", list)
		}
		kept := right.count("SELECT CAST(value AS INTEGER) FROM weaver_store_meta WHERE key = 'clock'")
		if by := time.UnixMicro(int64(kept)).Sub(time.Now().Add(thirtyYears)).Abs(); by > time.Minute {
			t.Errorf("the clock that is kept differs from the machine's by %v", by)
		}
	})
}

// An operator makes all programs of a store take the machine's time.
func TestAcceptClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "w.db")
		ahead := fixtureOn(t, openFile(t, path, sqlite.ClockShifted(20*time.Hour)))
		ahead.enqueue(1)
		shut(t, ahead.db)
		worker, doctor := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
		if _, err := worker.db.Enqueue(t.Context(), fixNS, nil, worker.drafts(1, at(time.Now().Add(24*time.Hour)))); err != nil {
			t.Fatal(err)
		}
		by, err := doctor.db.AcceptClock(t.Context())
		if err != nil || by < 19*time.Hour || by > 21*time.Hour {
			t.Errorf("AcceptClock: %v, %v, want 20h", by, err)
		}
		time.Sleep(2 * time.Second)
		worker.enqueue(1)
		time.Sleep(5 * time.Hour)
		if n := len(worker.claim("w", 50)); n != 2 {
			t.Errorf("%d tasks were claimed, want 2: another is for tomorrow", n)
		}
	})
}

// Write transactions store the clock, at most once a second. A transaction without a write
// does not.
func TestClockIsKeptOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		kept := func() string { return f.one("SELECT value FROM weaver_store_meta WHERE key = 'clock'") }
		f.enqueue(1)
		at := kept()
		time.Sleep(900 * time.Millisecond)
		f.enqueue(1)
		if got := kept(); got != at {
			t.Errorf("it was kept again after 0.9 s: %s, %s", at, got)
		}
		time.Sleep(time.Second)
		f.claim("w", 2)
		if got := kept(); got == at {
			t.Error("it was not kept after 1.9 s")
		}
		at = kept()
		time.Sleep(time.Minute)
		f.claim("w", 2) // nothing
		if got := kept(); got != at {
			t.Error("a claim that found nothing wrote")
		}
	})
}

// In memory there is no other process, and the clock is not stored.
func TestClockInMemory(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, memory(t))
	f.enqueue(1)
	if n := f.count("SELECT count(*) FROM weaver_store_meta WHERE key = 'clock'"); n != 0 {
		t.Error("the clock is kept")
	}
}
