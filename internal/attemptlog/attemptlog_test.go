package attemptlog_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

var ids = task.NewIDs(nil)

func attempt() attemptlog.Attempt {
	return attemptlog.Attempt{Job: ids.New(), Task: ids.New(), No: 1}
}

// folder returns a Folder with small limits; a warning fails the test.
func folder(t *testing.T, dir string, attemptBytes, folderBytes int64) *attemptlog.Folder {
	t.Helper()
	f := attemptlog.New(attemptlog.Config{Dir: dir, AttemptBytes: attemptBytes, FolderBytes: folderBytes, Warn: func(err error) { t.Error(err) }})
	t.Cleanup(f.Close)
	return f
}

func write(t *testing.T, w io.Writer, blocks ...string) {
	t.Helper()
	for _, b := range blocks {
		if n, err := w.Write([]byte(b)); n != len(b) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
}

func end(t *testing.T, w io.Closer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// keep writes a whole log.
func keep(t *testing.T, f *attemptlog.Folder, a attemptlog.Attempt, blocks ...string) {
	t.Helper()
	w := f.Writer(a)
	write(t, w, blocks...)
	end(t, w)
}

func open(t *testing.T, f *attemptlog.Folder, a attemptlog.Attempt) *attemptlog.Reader {
	t.Helper()
	r, err := f.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func rest(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func has(f *attemptlog.Folder, a attemptlog.Attempt) bool {
	r, err := f.Open(a)
	if err != nil {
		return false
	}
	_ = r.Close()
	return true
}

func TestKeepsBytes(t *testing.T) {
	t.Parallel()
	f := folder(t, filepath.Join(t.TempDir(), "new.logs"), 0, 0)
	first, second := attempt(), attempt()
	second.Job = task.ID{}
	odd := "a\x00\xff\x1b[31mred\r\n"
	keep(t, f, first, odd, "no line end")
	keep(t, f, second, "of no job")
	if got := rest(t, open(t, f, first)); got != odd+"no line end" {
		t.Errorf("got %q", got)
	}
	if got := rest(t, open(t, f, second)); got != "of no job" {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]fs.FileMode{"": 0o700, first.Job.String(): 0o700, fmt.Sprintf("tasks/%s.1.log", second.Task): 0o600} {
		if info, err := os.Stat(filepath.Join(f.Dir(), path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v, want %v", path, info, err, want)
		}
	}
}

func TestNothingWrittenIsNoFile(t *testing.T) {
	t.Parallel()
	f := folder(t, filepath.Join(t.TempDir(), "logs"), 0, 0)
	a := attempt()
	keep(t, f, a)
	f.Close()
	if _, err := f.Open(a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v", err)
	}
	if _, err := os.Stat(f.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// A reader continues from its position across the files of a log.
func TestReaderFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folder(t, dir, 80, 0) // 40 bytes in the first half, 20 in each quarter
	a := attempt()
	w := f.Writer(a)
	write(t, w, "0123456789")
	r := open(t, folder(t, dir, 0, 0), a) // another handle with default limits
	for _, block := range []string{"", "0123456789", strings.Repeat("x", 35), strings.Repeat("y", 10)} {
		write(t, w, block)
		want := block
		if block == "" {
			want = "0123456789"
		}
		if got := rest(t, r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	end(t, w)
	if got := rest(t, r); got != "" {
		t.Errorf("behind the end: %q", got)
	}
}

// A long log keeps its beginning and its end; a reader reports the missing bytes.
func TestLongLog(t *testing.T) {
	t.Parallel()
	for _, size := range []int{79, 80, 81, 100, 101, 1000} {
		f := folder(t, t.TempDir(), 80, 0)
		a := attempt()
		var all strings.Builder
		for i := 0; all.Len() < size; i++ {
			fmt.Fprintf(&all, "%d ", i)
		}
		text := all.String()[:size]
		w := f.Writer(a)
		for i := 0; i < size; i += 7 {
			write(t, w, text[i:min(i+7, size)])
		}
		end(t, w)
		got := rest(t, open(t, f, a))
		if size <= 80 {
			if got != text {
				t.Errorf("%d bytes: got %q", size, got)
			}
			continue
		}
		missing := (size-40-1)/20*20 - 20 // whole quarters except the last two
		want := fmt.Sprintf("%s\n[… %d bytes of this output were not kept]\n%s", text[:40], missing, text[40+missing:])
		if got != want {
			t.Errorf("%d bytes: got\n%s\nwant\n%s", size, got, want)
		}
	}
}

// A slow reader of a growing log is overtaken.
func TestReaderIsOvertaken(t *testing.T) {
	t.Parallel()
	f := folder(t, t.TempDir(), 80, 0)
	a := attempt()
	w := f.Writer(a)
	write(t, w, "begin\n")
	r := open(t, f, a)
	if got := rest(t, r); got != "begin\n" {
		t.Errorf("got %q", got)
	}
	write(t, w, strings.Repeat("x", 33)+"\n"+strings.Repeat("y", 60))
	if got, want := rest(t, r), strings.Repeat("x", 33)+"\n[… 20 bytes of this output were not kept]\n"+strings.Repeat("y", 40); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	end(t, w)
}

// The log of an attempt with the same number, written before the store was restored from a backup, is replaced.
func TestLogIsReplaced(t *testing.T) {
	t.Parallel()
	f := folder(t, t.TempDir(), 80, 0)
	a := attempt()
	keep(t, f, a, strings.Repeat("old", 100))
	keep(t, f, a, "new")
	if got := rest(t, open(t, f, a)); got != "new" {
		t.Errorf("got %q", got)
	}
}

func TestFullFolderWarnsOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings []error
	f := attemptlog.New(attemptlog.Config{Dir: filepath.Join(file, "logs"), Warn: func(err error) { warnings = append(warnings, err) }})
	for range 3 {
		w := f.Writer(attempt())
		for range 2 {
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("Write succeeded")
			}
		}
		end(t, w)
	}
	f.Close()
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), file) {
		t.Errorf("warnings %v", warnings)
	}
}

// Output that could not be written is missing, and a reader says so.
func TestRestIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	warnings := 0
	f := attemptlog.New(attemptlog.Config{Dir: dir, AttemptBytes: 80, Warn: func(error) { warnings++ }})
	a := attempt()
	w := f.Writer(a)
	write(t, w, strings.Repeat("x", 40))
	inTheWay := filepath.Join(dir, a.Job.String(), a.Task.String()+".1.more")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Write([]byte("lost")); err == nil {
			t.Error("Write succeeded")
		}
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	end(t, w)
	if got, want := rest(t, open(t, f, a)), strings.Repeat("x", 40)+"\n[… 8 bytes of this output were not kept]\n"; got != want || warnings != 1 {
		t.Errorf("got %q, want %q; %d warnings", got, want, warnings)
	}
}

// If the folder is full the oldest logs of all processes are deleted, except those that are being written.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const size, bound = 100 << 10, 1 << 20
	one, two := folder(t, dir, 0, bound), folder(t, dir, 0, bound)
	block := strings.Repeat("x", size)
	running := attempt()
	w := one.Writer(running)
	write(t, w, block)
	age(t, dir, 10*time.Hour)
	var ended []attemptlog.Attempt
	for i := range 30 {
		a := attempt()
		keep(t, []*attemptlog.Folder{one, two}[i%2], a, block)
		age(t, dir, time.Minute)
		ended = append(ended, a)
	}
	one.Close()
	two.Close()
	if !has(one, running) {
		t.Error("the log that is being written was removed")
	}
	write(t, w, "goes on")
	end(t, w)
	if got := rest(t, open(t, two, running)); got != block+"goes on" {
		t.Errorf("the running log has %d bytes", len(got))
	}
	kept := 0
	for i, a := range ended {
		if has(one, a) {
			kept++
		} else if kept > 0 {
			t.Errorf("log %d was removed, an older one was not", i)
		}
	}
	if kept < 5 || kept > 10 {
		t.Errorf("%d logs of 100 KiB were kept", kept)
	}
	if one.Removed().IsZero() || time.Since(one.Removed()) < 30*time.Second {
		t.Errorf("Removed = %v", one.Removed())
	}
	jobs, err := os.ReadDir(dir)
	if err != nil || len(jobs) != kept+2 { // the running log and .usage
		t.Errorf("%d folders remain: %v", len(jobs), err)
	}
}

// age makes every log older.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		at := info.ModTime().Add(-by)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// Missing or wrong numbers are counted again.
func TestUsageIsLost(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "nonsense", "99999999999 0\n"} {
		dir := t.TempDir()
		f := folder(t, dir, 0, 1<<20)
		a := attempt()
		keep(t, f, a, "x")
		if err := os.WriteFile(filepath.Join(dir, ".usage"), []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Close()
		raw, err := os.ReadFile(filepath.Join(dir, ".usage"))
		if err != nil || !strings.HasPrefix(string(raw), "4097 ") || !has(f, a) {
			t.Errorf("after %q: .usage has %q, %v", wrong, raw, err)
		}
	}
}

// The logs of all attempts of a task are removed, and those of other tasks stay. A log that is being written is an
// error.
func TestRemoveOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folder(t, dir, 80, 0)
	first, other := attempt(), attempt()
	again := first
	again.No = 12
	alone := attemptlog.Attempt{Task: first.Task, No: 3}
	keep(t, f, first, strings.Repeat("x", 200))
	keep(t, f, again, "y")
	keep(t, f, alone, "z")
	other.Job, other.Task[0] = first.Job, ^other.Task[0]
	keep(t, f, other, "o")
	if err := f.RemoveOf(first, alone); err != nil {
		t.Fatal(err)
	}
	if has(f, first) || has(f, again) || has(f, alone) || !has(f, other) {
		t.Errorf("logs: %v %v %v, of another task %v", has(f, first), has(f, again), has(f, alone), has(f, other))
	}
	if err := f.RemoveOf(first); err != nil {
		t.Errorf("a second time: %v", err)
	}
	w := f.Writer(first)
	write(t, w, "x")
	if err := f.RemoveOf(first); err == nil || !strings.Contains(err.Error(), "is being written") {
		t.Errorf("a log that is being written: %v", err)
	}
	end(t, w)
}
