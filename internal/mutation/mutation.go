// Package mutation runs the tests of changed code for the commands guards and
// mutants. Changed files stand in an overlay for the go command; the source tree
// stays as it is.
//
// Command guards removes named protections and requires a failing test for each.
// Command mutants samples small changes and counts those that no test notices.
package mutation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Root returns the root directory of the module in the current directory.
func Root(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(file))), nil
}

// Go runs the go command in a directory and returns its combined output.
func Go(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// Overlay is a temporary directory with an overlay file for the go command.
type Overlay struct {
	Dir  string
	File string // value of the flag -overlay
}

// NewOverlay writes an overlay that replaces files, by path. The caller must
// Remove it.
func NewOverlay(files map[string]string) (*Overlay, error) {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return nil, err
	}
	o := &Overlay{Dir: dir}
	if err := o.Replace(files); err != nil {
		o.Remove()
		return nil, err
	}
	return o, nil
}

// Replace makes the overlay replace these files and no others. In the output of
// the go command, [Stands] recognizes a replaced file.
func (o *Overlay) Replace(files map[string]string) error {
	replace := make(map[string]string, len(files))
	for path, text := range files {
		replace[path] = filepath.Join(o.Dir, strconv.Itoa(len(replace))+"-"+filepath.Base(path))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	o.File = filepath.Join(o.Dir, "overlay.json")
	return os.WriteFile(o.File, list, 0o600)
}

// Stands reports whether a file in the output of the go command replaces path.
func Stands(file, path string) bool { return strings.HasSuffix(file, "-"+filepath.Base(path)) }

// Remove deletes the directory.
func (o *Overlay) Remove() { _ = os.RemoveAll(o.Dir) } // it is in the system's temporary directory

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// FirstFailure returns the name of the first failed test in the output of go test,
// or of its innermost failed subtest.
func FirstFailure(out string) string {
	name := "the end of the process"
	for i, m := range failure.FindAllStringSubmatch(out, -1) {
		if i == 0 || strings.HasPrefix(m[1], name+"/") {
			name = m[1]
		}
	}
	return name
}

// TimedOut reports whether the output of go test says that a test did not end.
func TimedOut(out string) bool { return strings.Contains(out, "panic: test timed out after") }
