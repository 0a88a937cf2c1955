package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed durably/package.json durably/package-lock.json durably/bench.mjs
var durablyFiles embed.FS

// durably is @coji/durably, installed from npm in a temporary folder.
type durably struct{ dir string }

// newDurably installs @coji/durably. It needs node and npm, which the machine may lack.
func newDurably(ctx context.Context) (*durably, error) {
	dir, err := os.MkdirTemp("", "weaver-bench-durably-")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, durablyFiles); err != nil {
		return nil, err
	}
	d := &durably{filepath.Join(dir, "durably")}
	// Its optional SQLite driver is compiled during installation; skip it, because it is unused here.
	install := exec.CommandContext(ctx, "npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = d.dir
	if out, err := install.CombinedOutput(); err != nil {
		d.remove()
		return nil, fmt.Errorf("install @coji/durably: %w: %s", err, out)
	}
	return d, nil
}

func (d *durably) remove() { _ = os.RemoveAll(filepath.Dir(d.dir)) } // temporary

// inFolder calls f with a new folder.
func (d *durably) inFolder(_ context.Context, f func(place string) error) error {
	folder, err := os.MkdirTemp(d.dir, "run")
	if err != nil {
		return err
	}
	return f(folder)
}

// perSecond runs bench.mjs for what, step or seq. place is a folder or the URL of a PostgreSQL database.
func (d *durably) perSecond(ctx context.Context, what string, n int, place string) (float64, error) {
	cmd := exec.CommandContext(ctx, "node", "bench.mjs", what, strconv.Itoa(n), place)
	cmd.Dir, cmd.Stderr = d.dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strconv.ParseFloat(lines[len(lines)-1], 64)
}
