package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver"
)

// Tree is the input of the tasks that look at the whole source tree.
type Tree struct {
	GoRoot string
}

// failures is how often the flaky task fails.
const failures = 2

// flaky fails twice and then finds out the version of Go. Returning an error
// is all that a handler does to be retried: the engine records the attempt,
// waits (Backoff of the task type, doubled each time) and calls it again, in
// this process or in the next one.
func (w *worker) flaky(ctx context.Context, tree Tree) (string, error) {
	return step(ctx, w, "ask", func(context.Context) (string, error) {
		// Attempts that counted so far: failures do, attempts that a kill cut
		// off do not.
		if failed := weaver.Current(ctx).AttemptCount; failed < failures {
			return "", fmt.Errorf("failing on purpose, for the %s of %d times", []string{"first", "second"}[failed], failures)
		}
		text, err := os.ReadFile(filepath.Join(tree.GoRoot, "VERSION"))
		if errors.Is(err, fs.ErrNotExist) {
			return "a development version of Go", nil
		}
		version, _, _ := strings.Cut(string(text), "\n")
		return version, err
	})
}

// nap looks at the tree, sleeps, and looks again, so that the report can say
// that nothing changed in between.
//
// Sleep ends the attempt: the handler returns, and nothing of it is left in
// memory. When the time has come, possibly in another process, the handler
// begins again at the top, gets the value of "before" from the store, and
// finds that the sleep is over.
func (w *worker) nap(ctx context.Context, tree Tree) (int, error) {
	before, err := step(ctx, w, "before", func(context.Context) (int, error) { return countPackages(tree.GoRoot) })
	if err != nil {
		return 0, err
	}
	if err := weaver.Sleep(ctx, "nap", w.cfg.nap); err != nil {
		return 0, err // asleep, not failed: just return
	}
	after, err := step(ctx, w, "after", func(context.Context) (int, error) { return countPackages(tree.GoRoot) })
	if err != nil {
		return 0, err
	}
	if after != before {
		// No retry can help here, so it is not tried.
		return 0, weaver.Permanent(fmt.Errorf("%s changed while it was counted: it had %d packages and has %d", tree.GoRoot, before, after))
	}
	return after, nil
}

func countPackages(goroot string) (int, error) {
	pkgs, err := listPackages(goroot, 0)
	return len(pkgs), err
}
