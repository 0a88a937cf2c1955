package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

func init() { roles["limited"] = childIsLimited }

// childIsLimited writes from several goroutines while the system limits the length of its
// files. A limit needs no rights and acts like the end of a disk: a write arrives in part, and
// the next one not at all.
func childIsLimited(ctx context.Context, path string, in *bufio.Scanner, out io.Writer) error {
	signal.Ignore(syscall.SIGXFSZ) // otherwise the first such write ends the process
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	for in.Scan() {
		var bytes uint64
		switch n, _ := fmt.Sscanf(in.Text(), "limit %d", &bytes); {
		case n == 1:
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: old.Max})
		case in.Text() == "lift":
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
		default:
			err = limitedWork(ctx, db, out)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(in.Err(), db.Close())
}

// limitedWork writes until a call of each goroutine fails, or for a while, and reports the
// result of each call.
func limitedWork(ctx context.Context, db *sqlite.DB, out io.Writer) error {
	var mu sync.Mutex // a line is written at once
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 12 {
				ids, err := storm(ctx, db, i)
				mu.Lock()
				if err == nil {
					fmt.Fprintln(out, "stored", strings.Trim(fmt.Sprint(ids), "[]"))
				} else {
					fmt.Fprintln(out, "refused", strings.Trim(fmt.Sprint(ids), "[]"))
					fmt.Fprintf(out, "error %v %v %q\n", errors.Is(err, store.ErrFull), errors.Is(err, store.ErrUnavailable), err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	_, err := fmt.Fprintln(out, "done")
	return err
}

// limited is the output of the other process.
type limited struct {
	stored, refused []string
	errs            []string
}

func (l *limited) read(c *child) {
	c.t.Helper()
	for {
		verb, rest, _ := strings.Cut(c.readLine(), " ")
		switch verb {
		case "stored":
			l.stored = append(l.stored, strings.Fields(rest)...)
		case "refused":
			l.refused = append(l.refused, strings.Fields(rest)...)
		case "error":
			l.errs = append(l.errs, rest)
		case "done":
			return
		}
	}
}

// The system refuses to extend files, from any size on. The process ends there, or continues
// when the limit is lifted. Acknowledged calls are stored, refused calls are not.
func TestFileSizeLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	image, err := blank()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	limits := of(6, 60)
	for i := range limits {
		path := filepath.Join(t.TempDir(), "w.db")
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		// At any place in a page, and in a sector.
		bytes := len(image) + 1 + i*1_000_003/limits
		c := startChild(t, "limited", path)
		var got limited
		c.send(fmt.Sprint("limit ", bytes))
		c.send("work")
		got.read(c)
		refused += len(got.errs)
		for _, s := range got.errs {
			var full, unavailable bool
			if _, err := fmt.Sscan(s, &full, &unavailable); err != nil || !full && (causesAreReported || !unavailable) {
				t.Errorf("files of at most %d bytes: a caller got %s", bytes, s)
			}
		}
		if i%2 == 0 {
			c.kill()
		} else {
			c.send("lift")
			before := len(got.errs)
			c.send("work")
			got.read(c)
			if len(got.errs) != before {
				t.Errorf("after a limit of %d bytes was lifted: %v", bytes, got.errs[before:])
			}
			c.end()
		}
		got.check(t, path, bytes)
	}
	t.Logf("%d limits, %d calls refused", limits, refused)
	if refused == 0 {
		t.Error("no limit was met")
	}
}

func (l *limited) check(t *testing.T, path string, bytes int) {
	t.Helper()
	f, bad, err := look(t, path)
	if err != nil || len(bad) > 0 {
		t.Fatalf("files of at most %d bytes: %v %v", bytes, err, bad)
	}
	there := make(map[string]bool)
	for id := range f.tasks {
		there[id.String()] = true
	}
	for _, id := range l.stored {
		if !there[id] {
			t.Errorf("files of at most %d bytes: task %s was acknowledged and is gone", bytes, id)
		}
	}
	for _, id := range l.refused {
		if there[id] {
			t.Errorf("files of at most %d bytes: task %s was refused and is there", bytes, id)
		}
	}
}
