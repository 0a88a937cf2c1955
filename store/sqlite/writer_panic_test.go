package sqlite_test

import (
	"testing"
	"testing/synctest"
)

// A panic during a commit is the error of its group. It leaves no transaction open, and the
// turn to write is released.
func TestWritesGoOnAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine waits forever
		s := newNoteStore(t)
		s.fail = func(n int32) error {
			if n == 1 {
				panic("boom")
			}
			return nil
		}
		add := func(text string) error {
			return s.db.Write(t.Context(), func(x execSQL) error { return x(note(text)) })
		}
		s.commits.Store(0)
		if err := add("lost"); err == nil {
			t.Error("a write whose commit panicked is acknowledged")
		}
		if err := add("kept"); err != nil {
			t.Errorf("the write after it: %v", err)
		}
		if got := s.notes(); got != "kept" {
			t.Errorf("notes %q, want kept", got)
		}
	})
}
