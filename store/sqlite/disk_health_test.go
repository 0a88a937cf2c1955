package sqlite_test

import (
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
)

// While nothing can be written, Ready says why; afterwards it is content,
// also when nobody else wrote in the meantime.
func TestReadySaysWhyNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, tr := range map[string]trouble{
		"full":      {err: syscall.ENOSPC, lasts: true, want: store.ErrFull, words: fullWords},
		"read-only": {err: syscall.EROFS, lasts: true, want: store.ErrReadOnly, words: readOnlyWords},
		"broken":    {err: syscall.EIO, lasts: true, want: store.ErrUnavailable, words: []string{"w.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := tr.start(t, tr.plan(1))
				if err := r.db.Ready(t.Context()); err != nil {
					t.Errorf("Ready before anything was written: %v", err)
				}
				if r.enqueue("one", r.submission(1)) {
					t.Fatal("stored on a disk that takes nothing")
				}
				for range 2 {
					err := r.db.Ready(t.Context())
					if msg := tr.unlike(err); err == nil || msg != "" {
						t.Errorf("Ready while nothing can be written: %s: %v", msg, err)
					}
				}
				r.disk.Fail(nil)
				if err := r.db.Ready(t.Context()); err != nil {
					t.Errorf("Ready when the disk works again: %v", err)
				}
			})
		})
	}
}
