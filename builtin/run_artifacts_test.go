//go:build unix && !aix

package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
)

// names returns the names of a task's artifacts, in the order of keeping.
func (s *shop) names(id weaver.TaskID) (names []string) {
	s.Helper()
	list, err := s.Artifacts(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

func TestRunKeepsFiles(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{Bucket: blob.NewMemory()})
	h := s.enqueue(builtin.RunInput{
		Shell:             "mkdir -p out/sub.csv; echo b >out/b.csv; echo a >out/a.csv; echo h >out/.h.csv; : >empty; ln -s out/a.csv link; echo x >x.log",
		Dir:               t.TempDir(),
		Artifacts:         []string{"out/*.csv", "*/a.csv", "empty", "link"},
		ArtifactsOptional: []string{"*.log", "none/*"},
	})
	out, err := h.Wait(t.Context())
	if err != nil || out.ExitCode != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, want := s.names(h.ID()), []string{"empty", "link", "out/a.csv", "out/b.csv", "x.log"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	list, err := s.Artifacts(t.Context(), h.ID())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"empty": "", "link": "a\n", "out/b.csv": "b\n"} {
		i := slices.IndexFunc(list, func(a task.Artifact) bool { return a.Name == name })
		r, err := s.OpenArtifact(t.Context(), list[i].Ref())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestRunKeepsNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{Bucket: blob.NewMemory()})
	dir := t.TempDir()
	h := s.enqueue(builtin.RunInput{Shell: "echo x >a.txt", Dir: dir, Artifacts: []string{"a.txt", "*.csv"}}, weaver.NoRetry())
	s.fails(h, weaver.StateFailed, task.KindHandler, `"*.csv" matches no file in `+dir, "artifacts_optional")
	if got := s.names(h.ID()); len(got) > 0 {
		t.Errorf("it kept %v", got)
	}
	h = s.enqueue(builtin.RunInput{Shell: "echo x >a.txt; exit 3", Dir: dir, Artifacts: []string{"a.txt"}}, weaver.NoRetry())
	s.fails(h, weaver.StateFailed, task.KindHandler, "exit status 3")
	if got := s.names(h.ID()); len(got) > 0 {
		t.Errorf("of a command that failed it kept %v", got)
	}
	h = s.enqueue(builtin.RunInput{Shell: `i=0; while [ $i -le 1000 ]; do : >f$i; i=$((i+1)); done`, Dir: t.TempDir(), Artifacts: []string{"f*"}}, weaver.MaxAttempts(3))
	s.fails(h, weaver.StateFailed, task.KindHandler, "1001 files", "at most 1000")
}

// A worker without a bucket does not start the command.
func TestRunKeepsFilesNeedsABucket(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	dir := t.TempDir()
	h := s.enqueue(builtin.RunInput{Shell: "echo x >a.txt", Dir: dir, Artifacts: []string{"a.txt"}})
	if why := s.notHere(h.ID()); !strings.Contains(why, "Config.Bucket") {
		t.Errorf("it was released for %q", why)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command ran: %v", err)
	}
}

// fullBucket refuses every write.
type fullBucket struct{ blob.Bucket }

func (fullBucket) Put(context.Context, string, io.Reader) error { return blob.ErrFull }

// A full bucket fails the attempt: the command ran, and may not run again by
// default.
func TestRunKeepsFilesInAFullBucket(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{Bucket: fullBucket{blob.NewMemory()}})
	dir := t.TempDir()
	in := builtin.RunInput{Shell: "echo x >>a.txt", Dir: dir, Artifacts: []string{"a.txt"}}
	s.fails(s.enqueue(in, weaver.NoRetry()), weaver.StateFailed, task.KindHandler, "the command succeeded", "no space is left")
	s.fails(s.enqueue(in, weaver.MaxAttempts(2), weaver.Backoff(time.Millisecond)), weaver.StateFailed, task.KindHandler, "no space is left")
	if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != "x\nx\nx\n" {
		t.Errorf("the commands ran %d times, %v, want 1 and 2", len(got)/2, err)
	}
}

// After its files are kept a command does not run again, whatever the end of the
// attempt.
func TestRunKeepsFilesOnce(t *testing.T) {
	t.Parallel()
	var lost atomic.Bool
	s := newShop(t, weaver.Config{Bucket: blob.NewMemory(), Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{
		func(next weaver.HandlerFunc) weaver.HandlerFunc {
			return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
				out, err := next(ctx, in)
				if err == nil && lost.CompareAndSwap(false, true) {
					return nil, errors.New("lost on its way")
				}
				return out, err
			}
		},
	}})
	dir := t.TempDir()
	h := s.enqueue(builtin.RunInput{Shell: "echo x >>a.txt; echo said", Dir: dir, Artifacts: []string{"a.txt"}}, weaver.MaxAttempts(2), weaver.Backoff(time.Millisecond))
	out, err := h.Wait(t.Context())
	if err != nil || out.Stdout != "said\n" {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != "x\n" || !lost.Load() {
		t.Errorf("the command ran %d times, %v", len(got)/2, err)
	}
	if got := s.names(h.ID()); !slices.Equal(got, []string{"a.txt"}) {
		t.Errorf("kept %v", got)
	}
}
