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

// stamp is the state of a file.
type stamp struct {
	changed int64 // in nanoseconds
	size    int64
}

// watcher scans files periodically and reports the changed ones. Scanning was chosen over file system notifications:
// it needs no watch per folder (a limited resource on some systems), notices editors that replace a file, and works
// on network drives. Scanning a thousand files takes some milliseconds.
type watcher struct {
	root string
	deep bool // include the folders below root
	poll time.Duration
	seen map[string]stamp // by path from root
}

const (
	quiet      = 100 * time.Millisecond // files unchanged for this time are complete
	maxSettle  = 20                     // times quiet; the longest wait for further changes
	scanShare  = 20                     // scanning takes at most 1/scanShare of the time
	maxListed  = 3                      // maximum number of files in a message
	testSuffix = "_test.go"
)

// run sends the changed files until ctx ends. Changes while no receiver is ready go into the next message.
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

// scan returns the state of all files. An unreadable file counts as missing.
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
		info, err := os.Stat(path) // follows links, like the compiler
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

// skipped reports whether a folder contains no part of the module's programs.
func skipped(path, name string) bool {
	if name[0] == '.' || name[0] == '_' || slices.Contains([]string{"vendor", "testdata", "node_modules"}, name) {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil // another module
}

// compiled reports whether a build reads a file.
func compiled(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, testSuffix) && name[0] != '.' && name[0] != '_'
}

// differences returns the new, removed and changed files, sorted.
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

// pause waits for d, or returns the error of ctx.
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
