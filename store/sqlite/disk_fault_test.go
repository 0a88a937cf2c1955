package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/faults/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// diskFault is a failure of the disk at the n-th operation of a kind.
type diskFault struct {
	name   string
	counts disktest.Kind // the kind of operation that n counts
	err    error
	lasts  bool // until it is lifted; otherwise it fails once
	scarce bool // operations without new space succeed
	torn   bool // half of a write arrives
	cache  int  // cache pages of the writer; few pages make it write inside statements

	want    error    // expected error of callers
	message []string // parts of its message
	maybe   bool     // a failed call may have taken effect
}

const smallCache = 5

// causesAreReported means that the operating system's error for a write reaches the caller,
// although SQLite cleans up after an error through the same file layer.
const causesAreReported = true

var (
	fullMessage     = []string{"w.db", "free some space"}
	readOnlyMessage = []string{"w.db", "check the permissions"}
)

func diskFaults() []diskFault {
	return []diskFault{
		{name: "no space, once", err: syscall.ENOSPC, torn: true, want: store.ErrFull, message: fullMessage},
		{name: "no space until some is freed", err: syscall.ENOSPC, lasts: true, scarce: true, torn: true, want: store.ErrFull, message: fullMessage},
		{name: "no space inside statements, once", err: syscall.ENOSPC, cache: smallCache, want: store.ErrFull, message: fullMessage},
		{name: "no space inside statements", err: sqlite3.FULL, lasts: true, torn: true, cache: smallCache, want: store.ErrFull, message: fullMessage},
		{name: "the quota is used up", err: syscall.EDQUOT, lasts: true, scarce: true, want: store.ErrFull, message: fullMessage},
		{name: "no space at the sync", counts: disktest.Sync, err: syscall.ENOSPC, want: store.ErrFull, message: fullMessage, maybe: true},
		{name: "a write fails", err: syscall.EIO, torn: true, want: store.ErrUnavailable},
		{name: "all writes fail", err: sqlite3.IOERR_WRITE, lasts: true, torn: true, want: store.ErrUnavailable},
		{name: "a write inside a statement fails", err: syscall.EIO, cache: smallCache, want: store.ErrUnavailable},
		{name: "a sync fails", counts: disktest.Sync, err: syscall.EIO, want: store.ErrUnavailable, maybe: true},
		{name: "all syncs fail", counts: disktest.Sync, err: sqlite3.IOERR_FSYNC, lasts: true, want: store.ErrUnavailable, maybe: true},
		{name: "a sync inside a statement's spill fails", counts: disktest.Sync, err: syscall.EIO, cache: smallCache, want: store.ErrUnavailable, maybe: true},
		{name: "read-only", err: syscall.EROFS, lasts: true, want: store.ErrReadOnly, message: readOnlyMessage},
		{name: "read-only at the sync", counts: disktest.Sync, err: sqlite3.READONLY, lasts: true, want: store.ErrReadOnly, message: readOnlyMessage, maybe: true},
		{name: "a truncation fails", counts: disktest.Truncate, err: syscall.EIO, lasts: true, want: store.ErrUnavailable},
		{name: "no space to allocate", counts: disktest.Allocate, err: syscall.ENOSPC, lasts: true, want: store.ErrFull, message: fullMessage},
	}
}

// plan fails from the n-th operation on.
func (df diskFault) plan(n int) disktest.Plan {
	began := false
	return func(op disktest.Op) *disktest.Fault {
		hit := op.Kind == df.counts && op.N == n
		if hit {
			began = true
		}
		// A full disk still opens existing files, unless it is read-only.
		if op.Kind == disktest.Open && !errors.Is(df.want, store.ErrReadOnly) {
			return nil
		}
		if !hit && (!began || !df.lasts || df.scarce && !op.Grows) {
			return nil
		}
		f := &disktest.Fault{Err: df.err}
		if df.torn {
			f.Keep = op.Len / 2
		}
		return f
	}
}

// start opens a database for a fault, and counts from here on.
func (df diskFault) start(t *testing.T, plan disktest.Plan, opts ...sqlite.Option) *rig {
	t.Helper()
	r := newRig(t, opts...)
	if df.cache > 0 {
		if err := r.db.Exec(t.Context(), fmt.Sprint("PRAGMA cache_size=", df.cache)); err != nil {
			t.Fatal(err)
		}
	}
	// The reading connections are open before the fault begins.
	if _, bad, err := r.view(); err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	r.disk.Fail(plan)
	return r
}

// The disk fails at any one operation of the script, once or until it is lifted. Acknowledged
// calls survive the end of the process, failed calls have no effect, and their errors name the
// cause. When the disk works again, so does the same handle.
func TestDiskFails(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for _, df := range diskFaults() {
		t.Run(df.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				dry := df.start(t, nil)
				dry.script()
				for _, err := range dry.led.errs() {
					t.Fatalf("on a disk that works: %v", err)
				}
				points, reported := dry.disk.Count(df.counts), 0
				played := 0
				for n := 1; n <= points; n += spread(points, of(8, points)) {
					reported += df.play(t, n)
					played++
				}
				t.Logf("%d of %d points, %d errors reported", played, points, reported)
				if reported == 0 && df.counts != disktest.Truncate && df.counts != disktest.Allocate {
					t.Error("no caller got an error: the test sees nothing")
				}
			})
		})
	}
}

// play plays the script with a failure at the n-th operation, and returns the number of failed
// calls.
func (df diskFault) play(t *testing.T, n int) int {
	t.Helper()
	r := df.start(t, df.plan(n))
	defer r.close()
	r.script()
	at := fmt.Sprintf("%s %d fails (%v)", df.counts, n, df.err)
	if r.disk.Faults() == 0 {
		t.Errorf("%s: it never happened", at)
	}
	errs := r.led.errs()
	for _, err := range errs {
		if msg := df.unlike(err); msg != "" {
			t.Errorf("%s: %s:\n%v", at, msg, err)
		}
	}
	// As left by the end of the process.
	f, bad, err := lookAt(t, t.TempDir(), r.files())
	r.check(at+", then kill", f, bad, err, df.maybe)
	// As seen by this process.
	f, bad, err = r.view()
	r.check(at+", seen from here", f, bad, err, false)

	r.disk.Fail(nil)
	r.resume()
	r.close()
	f, bad, err = look(t, r.path)
	// The same leases were finished by then: these ends may be stored.
	r.check(at+", then work went on", f, bad, err, true)
	return len(errs)
}

// unlike returns the missing part of an error.
func (df diskFault) unlike(err error) string {
	if errors.As(err, new(driversError)) {
		return ""
	}
	if !causesAreReported && errors.As(df.err, new(syscall.Errno)) && errors.Is(err, store.ErrUnavailable) {
		return ""
	}
	if !errors.Is(err, df.want) {
		return fmt.Sprintf("want %q", df.want)
	}
	for _, w := range df.message {
		if !strings.Contains(err.Error(), w) {
			return fmt.Sprintf("does not say %q", w)
		}
	}
	return ""
}

// check reports differences between a file and the ledger.
func (r *rig) check(at string, f *found, bad []string, err error, maybe bool) {
	r.Helper()
	if err != nil {
		r.Errorf("%s: the file cannot be read: %v", at, err)
		return
	}
	v := r.led.compare(f, always, maybe)
	if bad = append(append(bad, v.lost...), v.wrong...); len(bad) > 0 {
		r.Errorf("%s:\n%s", at, strings.Join(bad, "\n"))
	}
}

// files returns the bytes of the database and its log.
func (r *rig) files() map[string][]byte {
	r.Helper()
	image := make(map[string][]byte)
	for _, p := range []string{r.path, r.path + "-wal"} {
		b, err := os.ReadFile(p)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.Fatal(err)
		}
		if err == nil {
			image[p] = b
		}
	}
	return image
}
