package sqlite_test

import (
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
)

// While writes fail, Ready returns the reason. Afterwards it returns nil, even without a write
// in between.
func TestReadySaysWhyNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, df := range map[string]diskFault{
		"full":      {err: syscall.ENOSPC, lasts: true, want: store.ErrFull, message: fullMessage},
		"read-only": {err: syscall.EROFS, lasts: true, want: store.ErrReadOnly, message: readOnlyMessage},
		"broken":    {err: syscall.EIO, lasts: true, want: store.ErrUnavailable, message: []string{"w.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := df.start(t, df.plan(1))
				if err := r.db.Ready(t.Context()); err != nil {
					t.Errorf("Ready before anything was written: %v", err)
				}
				if r.enqueue("one", r.submission(1)) {
					t.Fatal("stored on a disk that takes nothing")
				}
				for range 2 {
					err := r.db.Ready(t.Context())
					if msg := df.unlike(err); err == nil || msg != "" {
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
