package devrun

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stamp is how a file looked.
type stamp struct {
	changed int64 // in nanoseconds
	size    int64
}

// watcher looks at files again and again, and tells which of them changed. It asks the
// file system instead of being notified by it: that needs no watch per folder (of which
// systems give out a limited number), notices editors that write a new file in place of
// the old one, and works on network drives. A look at a thousand files takes some
// milliseconds.
type watcher struct {
	root string
	deep bool // also the folders below root
	poll time.Duration
	seen map[string]stamp // by path from root
}

const (
	quiet      = 100 * time.Millisecond // files that did not change for so long are complete
	maxSettle  = 20                     // times quiet, after which it no longer waits for more
	scanShare  = 20                     // looking takes at most 1/scanShare of the time
	maxListed  = 3                      // files that a message names
	testSuffix = "_test.go"
)

// run sends the changed files, until ctx ends. What changes while no receiver is there is
// part of the next message.
func (w *watcher) run(ctx context.Context, changes chan<- []string) error {
	for {
		began := time.Now()
		now := w.scan()
		if len(differences(w.seen, now)) == 0 {
			if err := pause(ctx, max(w.poll, scanShare*time.Since(began))); err != nil {
				return err
			}
			continue
		}
		for range maxSettle {
			if err := pause(ctx, quiet); err != nil {
				return err
			}
			next := w.scan()
			settled := len(differences(now, next)) == 0
			if now = next; settled {
				break
			}
		}
		changed := differences(w.seen, now)
		w.seen = now
		if len(changed) == 0 {
			continue
		}
		select {
		case changes <- changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// scan looks at all files. What cannot be read counts as not there.
func (w *watcher) scan() map[string]stamp {
	found := make(map[string]stamp, len(w.seen))
	_ = filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil
		case d.IsDir() && path != w.root && (!w.deep || skipped(path, d.Name())):
			return fs.SkipDir
		case d.IsDir() || !compiled(d.Name()):
			return nil
		}
		info, err := os.Stat(path) // follows links, as the compiler does
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if rel, err := filepath.Rel(w.root, path); err == nil {
			found[rel] = stamp{info.ModTime().UnixNano(), info.Size()}
		}
		return nil
	})
	return found
}

// skipped reports whether nothing in a folder is part of the module's programs.
func skipped(path, name string) bool {
	if name[0] == '.' || name[0] == '_' || slices.Contains([]string{"vendor", "testdata", "node_modules"}, name) {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil // another module
}

// compiled reports whether a file is read to build a program.
func compiled(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, testSuffix) && name[0] != '.' && name[0] != '_'
}

// differences returns the files that are new, gone or other ones, sorted.
func differences(before, after map[string]stamp) []string {
	var names []string
	for name, s := range after {
		if old, ok := before[name]; !ok || old != s {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pause returns after d, or with the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
