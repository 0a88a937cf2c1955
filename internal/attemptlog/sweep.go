package attemptlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/task"
)

const (
	usageName = ".usage"
	perFile   = 4 << 10   // estimated overhead of a file
	sayAfter  = 256 << 10 // bytes that a process writes before it adds them to .usage

	// endedAfter is the age after which a log counts as ended on a system without locks, and after which an empty log
	// may be removed.
	endedAfter = time.Hour
)

// usage is the content of the file .usage.
type usage struct {
	bytes   int64     // of all logs, approximately; a killed process did not add its last bytes
	removed time.Time // the last write of the newest removed log
}

// grew counts written bytes. Once they exceed sayAfter it adds them to .usage, and removes logs above the size limit.
func (f *Folder) grew(bytes int64) {
	if f.unsaid.Add(bytes) < sayAfter || !f.saying.TryLock() {
		return
	}
	defer f.saying.Unlock()
	f.say()
}

// Close adds the remaining written bytes to .usage. Call it after every Writer is closed.
func (f *Folder) Close() {
	f.saying.Lock()
	defer f.saying.Unlock()
	if f.unsaid.Load() != 0 {
		f.say()
	}
}

// say adds the bytes that this process wrote to .usage. The caller holds f.saying.
func (f *Folder) say() {
	bytes := f.unsaid.Swap(0)
	if err := f.update(bytes); err != nil {
		f.warn(err)
	}
}

func (f *Folder) update(bytes int64) (err error) {
	file, err := f.cfg.as().Open(filepath.Join(f.cfg.Dir, usageName), os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, filelock.Close(file)) }()
	if err := filelock.Lock(file); err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	u, known := readUsage(file)
	u.bytes += bytes
	if !known || u.bytes > f.cfg.FolderBytes {
		if u, err = f.sweep(u); err != nil {
			return err
		}
	}
	// Crash here: the file has the old numbers or an unreadable line; in the second case the next process counts all
	// logs again.
	line := fmt.Sprintf("%d %d\n", u.bytes, nanos(u.removed))
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(line), 0)
	return err
}

// readUsage reads .usage; ok is false if the file is new or unreadable.
func readUsage(file io.Reader) (usage, bool) {
	var u usage
	var nano int64
	if _, err := fmt.Fscanf(file, "%d %d\n", &u.bytes, &nano); err != nil {
		return usage{}, false
	}
	if nano != 0 {
		u.removed = time.Unix(0, nano)
	}
	return u, true
}

// nanos returns a time in nanoseconds since 1970; 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Removed returns the last write of the newest log that was removed for its age; zero if no log was removed.
func (f *Folder) Removed() time.Time {
	file, err := os.Open(filepath.Join(f.cfg.Dir, usageName))
	if err != nil {
		return time.Time{}
	}
	defer func() { _ = file.Close() }() // the file was only read
	u, _ := readUsage(file)
	return u.removed
}

// attemptFiles describes the files of one attempt.
type attemptFiles struct {
	first   string
	bytes   int64
	empty   bool // the first file exists and is empty
	written time.Time
}

// sweep counts the logs. Above the size limit it removes the oldest until an eighth of the limit is free.
func (f *Folder) sweep(u usage) (usage, error) {
	attempts, err := f.list()
	if err != nil {
		return u, err
	}
	u.bytes = 0
	for _, a := range attempts {
		u.bytes += a.bytes
	}
	if u.bytes <= f.cfg.FolderBytes {
		return u, nil
	}
	slices.SortFunc(attempts, func(a, b *attemptFiles) int { return a.written.Compare(b.written) })
	for _, a := range attempts {
		if u.bytes <= f.cfg.FolderBytes/8*7 {
			break
		}
		gone, err := a.remove()
		if err != nil {
			return u, err
		}
		if gone {
			u.bytes -= a.bytes
			if a.written.After(u.removed) {
				u.removed = a.written
			}
			_ = os.Remove(filepath.Dir(a.first)) // fails while the folder has other logs
		}
	}
	return u, nil
}

// list returns the logs in the folder.
func (f *Folder) list() ([]*attemptFiles, error) {
	known := make(map[string]*attemptFiles)
	var all []*attemptFiles
	err := filepath.WalkDir(f.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process removed it
		}
		if err != nil || e.IsDir() {
			return err
		}
		first, ok := firstOf(path)
		if !ok {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		a := known[first]
		if a == nil {
			a = &attemptFiles{first: first}
			known[first] = a
			all = append(all, a)
		}
		a.bytes += info.Size() + perFile
		a.empty = a.empty || path == first && info.Size() == 0
		if info.ModTime().After(a.written) {
			a.written = info.ModTime()
		}
		return nil
	})
	return all, err
}

// remove removes a log unless it is being written.
func (a *attemptFiles) remove() (bool, error) {
	if (a.empty || !filelock.Supported) && time.Since(a.written) < endedAfter {
		return false, nil
	}
	first, err := os.Open(a.first)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a sweep was killed while it removed this log
	case err != nil:
		return false, err
	default:
		free, err := filelock.Try(first)
		if err = errors.Join(err, filelock.Close(first)); err != nil || !free && filelock.Supported {
			return false, err
		}
	}
	// The first file goes first: without it the log does not exist.
	if err := os.Remove(a.first); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, os.RemoveAll(moreDir(a.first))
}

// Remove removes the logs of tasks outside jobs, and of whole jobs, by their IDs. It skips logs that are being
// written.
func (f *Folder) Remove(ids ...task.ID) error {
	var errs []error
	for _, id := range ids {
		own, err := filepath.Glob(filepath.Join(f.cfg.Dir, "tasks", id.String()+".*"+firstSuffix))
		errs = append(errs, err)
		ofJob, err := filepath.Glob(filepath.Join(f.cfg.Dir, id.String(), "*"+firstSuffix))
		errs = append(errs, err)
		for _, first := range append(own, ofJob...) {
			_, err := (&attemptFiles{first: first}).remove()
			errs = append(errs, err)
		}
		if len(ofJob) > 0 {
			_ = os.Remove(filepath.Join(f.cfg.Dir, id.String())) // fails while the folder has other logs
		}
	}
	return errors.Join(errs...)
}

// RemoveOf removes the logs of all attempts of tasks. A task without logs is not an error; a log that is being
// written is.
func (f *Folder) RemoveOf(tasks ...Attempt) error {
	var errs []error
	for _, a := range tasks {
		list, err := filepath.Glob(strings.TrimSuffix(f.path(a), fmt.Sprint(a.No, firstSuffix)) + "*" + firstSuffix)
		errs = append(errs, err)
		for _, first := range list {
			gone, err := (&attemptFiles{first: first}).remove()
			if err == nil && !gone {
				err = fmt.Errorf("%s is being written: try again when its command has ended", first)
			}
			errs = append(errs, err)
		}
		if len(list) > 0 && a.Job != (task.ID{}) {
			_ = os.Remove(filepath.Dir(list[0])) // fails while the folder has other logs
		}
	}
	return errors.Join(errs...)
}
