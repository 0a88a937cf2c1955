package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// trouble is a way in which a disk fails, at the n-th operation of a kind.
type trouble struct {
	name   string
	counts disktest.Kind // what n counts
	err    error
	lasts  bool // until it is lifted; otherwise it fails once
	scarce bool // what needs no new space goes on
	torn   bool // half of a write arrives
	cache  int  // pages that the writer may keep; fewer make it write inside statements

	want  error    // what callers are told …
	words []string // … and in which words
	maybe bool     // what got an error may have happened all the same
}

const smallCache = 5

// causesAreTold: what the operating system said about a write reaches the
// caller, though SQLite cleans up after an error through the same file layer.
const causesAreTold = true

var (
	fullWords     = []string{"w.db", "free some space"}
	readOnlyWords = []string{"w.db", "check the permissions"}
)

func troubles() []trouble {
	return []trouble{
		{name: "no space, once", err: syscall.ENOSPC, torn: true, want: store.ErrFull, words: fullWords},
		{name: "no space until some is freed", err: syscall.ENOSPC, lasts: true, scarce: true, torn: true, want: store.ErrFull, words: fullWords},
		{name: "no space inside statements, once", err: syscall.ENOSPC, cache: smallCache, want: store.ErrFull, words: fullWords},
		{name: "no space inside statements", err: sqlite3.FULL, lasts: true, torn: true, cache: smallCache, want: store.ErrFull, words: fullWords},
		{name: "the quota is used up", err: syscall.EDQUOT, lasts: true, scarce: true, want: store.ErrFull, words: fullWords},
		{name: "no space at the sync", counts: disktest.Sync, err: syscall.ENOSPC, want: store.ErrFull, words: fullWords, maybe: true},
		{name: "a write fails", err: syscall.EIO, torn: true, want: store.ErrUnavailable},
		{name: "all writes fail", err: sqlite3.IOERR_WRITE, lasts: true, torn: true, want: store.ErrUnavailable},
		{name: "a write inside a statement fails", err: syscall.EIO, cache: smallCache, want: store.ErrUnavailable},
		{name: "a sync fails", counts: disktest.Sync, err: syscall.EIO, want: store.ErrUnavailable, maybe: true},
		{name: "all syncs fail", counts: disktest.Sync, err: sqlite3.IOERR_FSYNC, lasts: true, want: store.ErrUnavailable, maybe: true},
		{name: "a sync inside a statement's spill fails", counts: disktest.Sync, err: syscall.EIO, cache: smallCache, want: store.ErrUnavailable, maybe: true},
		{name: "read-only", err: syscall.EROFS, lasts: true, want: store.ErrReadOnly, words: readOnlyWords},
		{name: "read-only at the sync", counts: disktest.Sync, err: sqlite3.READONLY, lasts: true, want: store.ErrReadOnly, words: readOnlyWords, maybe: true},
		{name: "a truncation fails", counts: disktest.Truncate, err: syscall.EIO, lasts: true, want: store.ErrUnavailable},
		{name: "no space to allocate", counts: disktest.Allocate, err: syscall.ENOSPC, lasts: true, want: store.ErrFull, words: fullWords},
	}
}

// plan fails from the n-th operation on.
func (tr trouble) plan(n int) disktest.Plan {
	began := false
	return func(op disktest.Op) *disktest.Fault {
		hit := op.Kind == tr.counts && op.N == n
		if hit {
			began = true
		}
		// A disk that takes nothing more still opens what is there, unless it is
		// read-only.
		if op.Kind == disktest.Open && !errors.Is(tr.want, store.ErrReadOnly) {
			return nil
		}
		if !hit && (!began || !tr.lasts || tr.scarce && !op.Grows) {
			return nil
		}
		f := &disktest.Fault{Err: tr.err}
		if tr.torn {
			f.Keep = op.Len / 2
		}
		return f
	}
}

// start opens a database for a trouble, and counts from here on.
func (tr trouble) start(t *testing.T, plan disktest.Plan, opts ...sqlite.Option) *rig {
	t.Helper()
	r := newRig(t, opts...)
	if tr.cache > 0 {
		if err := r.db.Exec(t.Context(), fmt.Sprint("PRAGMA cache_size=", tr.cache)); err != nil {
			t.Fatal(err)
		}
	}
	// The connections that read are open before the trouble begins.
	if _, bad, err := r.view(); err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	r.disk.Fail(plan)
	return r
}

// The disk fails at any one operation of the script, once or until it is
// lifted. What was acknowledged is there after the end of the process, what
// got an error is not, callers are told what the matter is, and when the disk
// works again so does the same handle.
func TestDiskFails(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for _, tr := range troubles() {
		t.Run(tr.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				dry := tr.start(t, nil)
				dry.script()
				for _, err := range dry.led.errs() {
					t.Fatalf("on a disk that works: %v", err)
				}
				points, told := dry.disk.Count(tr.counts), 0
				played := 0
				for n := 1; n <= points; n += spread(points, of(8, points)) {
					told += tr.play(t, n)
					played++
				}
				t.Logf("%d of %d points, %d errors told", played, points, told)
				if told == 0 && tr.counts != disktest.Truncate && tr.counts != disktest.Allocate {
					t.Error("no caller was told anything: the test sees nothing")
				}
			})
		})
	}
}

// play plays the script with a failure at the n-th operation, and returns how
// many callers were told.
func (tr trouble) play(t *testing.T, n int) int {
	t.Helper()
	r := tr.start(t, tr.plan(n))
	defer r.close()
	r.script()
	at := fmt.Sprintf("%s %d fails (%v)", tr.counts, n, tr.err)
	if r.disk.Faults() == 0 {
		t.Errorf("%s: it never came", at)
	}
	errs := r.led.errs()
	for _, err := range errs {
		if msg := tr.unlike(err); msg != "" {
			t.Errorf("%s: %s:\n%v", at, msg, err)
		}
	}
	// As the end of the process leaves it.
	f, bad, err := lookAt(t, t.TempDir(), r.files())
	r.check(at+", then kill", f, bad, err, tr.maybe)
	// As this process sees it.
	f, bad, err = r.view()
	r.check(at+", seen from here", f, bad, err, false)

	r.disk.Fail(nil)
	r.resume()
	r.close()
	f, bad, err = look(t, r.path)
	// The same leases were finished by then: that may be there.
	r.check(at+", then work went on", f, bad, err, true)
	return len(errs)
}

// unlike says what an error lacks.
func (tr trouble) unlike(err error) string {
	if errors.As(err, new(driversError)) {
		return ""
	}
	if !causesAreTold && errors.As(tr.err, new(syscall.Errno)) && errors.Is(err, store.ErrUnavailable) {
		return ""
	}
	if !errors.Is(err, tr.want) {
		return fmt.Sprintf("want %q", tr.want)
	}
	for _, w := range tr.words {
		if !strings.Contains(err.Error(), w) {
			return fmt.Sprintf("does not say %q", w)
		}
	}
	return ""
}

// check reports what a file has that it must not, or has not.
func (r *rig) check(at string, f *found, bad []string, err error, maybe bool) {
	r.Helper()
	if err != nil {
		r.Errorf("%s: the file cannot be read: %v", at, err)
		return
	}
	v := r.led.judge(f, always, maybe)
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
