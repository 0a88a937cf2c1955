//go:build unix && !aix

package builtin_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
)

// filesType keeps a file twice, and a link.
var filesType = weaver.Define[weaver.None, weaver.None]("acme.files.make.v1", weaver.NoRetry())

func keepFiles(ctx context.Context, _ weaver.None) (none weaver.None, err error) {
	_, err = weaver.Step(ctx, "old", func(ctx context.Context) (weaver.ArtifactRef, error) {
		return weaver.PutArtifact(ctx, "out/a.csv", strings.NewReader("old"))
	})
	_, err2 := weaver.PutArtifact(ctx, "out/a.csv", strings.NewReader("new"))
	_, err3 := weaver.LinkArtifact(ctx, "elsewhere", task.Link{URL: "https://example.com/a?k=v"})
	return none, errors.Join(err, err2, err3)
}

func TestRunGetsFiles(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{Bucket: blob.NewMemory(), Handlers: []weaver.Handler{filesType.Handler(keepFiles)}})
	run := func(shell, file string) weaver.TaskInfo {
		return s.chain(filesType.With(weaver.None{}), builtin.Run.With(builtin.RunInput{
			Argv: []string{"sh", "-c", shell, "sh", `{{.tasks.first.artifacts["` + file + `"]}}`}, Templates: true,
		}))
	}
	got := run(`printf '%s ' "$1"; cat "$1"`, "out/a.csv")
	path, text, _ := strings.Cut(decode[builtin.RunOutput](t, got.Output).Stdout, " ")
	if text != "new" || !strings.HasSuffix(path, "/out/a.csv") {
		t.Errorf("the command got %q with %q: %s", path, text, got.Error.Message)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy %s stays: %v", path, err)
	}
	if out := decode[builtin.RunOutput](t, run(`printf '%s' "$1"`, "elsewhere").Output); out.Stdout != "https://example.com/a?k=v" {
		t.Errorf("of a link the command got %q", out.Stdout)
	}
	if got := run("true", "none"); !strings.Contains(got.Error.Message, `task "first" has no artifact "none"`) || got.AttemptNo != 1 {
		t.Errorf("a file that is not there: %q after %d attempts", got.Error.Message, got.AttemptNo)
	}
	in := builtin.RequestInput{URL: "http://127.0.0.1:1/", Method: "POST", Body: `{{.tasks.first.artifacts["elsewhere"]}}`, Templates: true}
	if err := in.Validate(); err == nil || !strings.Contains(err.Error(), "is the path of a file") {
		t.Errorf("a request with a file: %v", err)
	}
}

func TestRunKeepsFilesForATime(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{Bucket: blob.NewMemory()})
	h := s.enqueue(builtin.RunInput{Shell: "echo a >a", Dir: t.TempDir(), Artifacts: []string{"a"}, ArtifactsTTL: builtin.Duration(time.Hour)})
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := s.Artifacts(t.Context(), h.ID())
	if err != nil || len(list) != 1 || list[0].ExpiresAt.Sub(list[0].CreatedAt) != time.Hour {
		t.Errorf("Artifacts = %+v, %v", list, err)
	}
	for _, in := range []builtin.RunInput{
		{Shell: "true", ArtifactsTTL: builtin.Duration(time.Hour)},
		{Shell: "true", Artifacts: []string{"a"}, ArtifactsTTL: -1},
	} {
		if err := in.Validate(); err == nil || !strings.Contains(err.Error(), "artifacts_ttl is ") {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
