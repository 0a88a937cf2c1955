package clitest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// For a chain of any length the first line of why names the task at the root, its error and the path, and the output
// is short.
func TestWhyOfALongChain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("name: chain\ntasks:\n  c0: {run: \"true\"}\n")
	for i := 1; i < 300; i++ {
		command := "true"
		if i == 5 {
			command = "echo no such table >&2; exit 1"
		}
		fmt.Fprintf(&b, "  c%d: {run: %q, needs: [c%d], retry: {max_attempts: 1}}\n", i, command, i-1)
	}
	write(t, filepath.Join(dir, "chain.yaml"), b.String())
	run := start(t, dir, "run", "-o", "json", "chain.yaml")
	end := run.await(`"event":"job.finished"`)
	run.end()
	_, last, _ := strings.Cut(end, `"name":"c299",`)
	for id, want := range map[string]string{
		field(last, "id"):    "c5 failed: exit status 1: no such table; c299 needs it through c298 … c6.",
		field(end, "job_id"): "c5 failed: exit status 1: no such table; 294 tasks that need it were cancelled.",
	} {
		p := start(t, dir, "why", id)
		if code := p.end(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, p.stderr.String())
		}
		_, answer, _ := strings.Cut(p.stdout.String(), "\n\n")
		first, _, _ := strings.Cut(answer, "\n")
		if first != want || strings.Count(answer, "\n") > 25 {
			t.Errorf("the first line is not %q, or the answer is long:\n%s", want, p.stdout.String())
		}
	}
}
