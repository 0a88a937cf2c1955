package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commands is the number of commands in one run of a pipeline.
const commands = 1000

// pipelines compares `weaver run` of commands that do nothing with xargs running the same program with the same
// concurrency. It returns milliseconds per command, including start and end of both programs.
func pipelines(ctx context.Context, runs int) (ours, theirs figure, err error) {
	dir, err := os.MkdirTemp("", "weaver-bench")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	weaver := filepath.Join(dir, "weaver")
	build := exec.CommandContext(ctx, "go", "build", "-o", weaver, "./cmd/weaver")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("build the weaver command: %w: %s", err, out)
	}
	var file strings.Builder
	file.WriteString("name: commands\ntasks:\n")
	for i := range commands {
		fmt.Fprintf(&file, "  t%d: {run: [\"true\"]}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "commands.yaml"), []byte(file.String()), 0o600); err != nil {
		return nil, nil, err
	}
	for i := range runs {
		store := fmt.Sprintf("sqlite:run%d.db", i)
		for _, m := range []struct {
			to  *figure
			cmd *exec.Cmd
		}{
			{&theirs, exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("seq %d | xargs -P 8 -n 1 true", commands))},
			{&ours, exec.CommandContext(ctx, weaver, "--store", store, "run", "--slots", "8", "commands.yaml")},
		} {
			m.cmd.Dir = dir
			began := time.Now()
			if out, err := m.cmd.CombinedOutput(); err != nil {
				return nil, nil, fmt.Errorf("%s: %w: %s", m.cmd, err, out)
			}
			*m.to = append(*m.to, float64(time.Since(began).Milliseconds())/commands)
		}
	}
	return ours, theirs, nil
}
