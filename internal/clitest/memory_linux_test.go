package clitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxResident is the maximum memory of a run in KiB: the program's own pages and a heap that does not hold the
// 100 MB of output.
const maxResident = 144 << 10

// The memory of a run does not depend on the amount of output of its commands.
func TestE2EMuchOutput(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "much.yaml"), `name: much
tasks:
  lines: {run: "yes 'a line of output' | head -c 50000000"}
  none: {run: "head -c 50000000 /dev/zero"}
`)
			p := start(t, dir, "run", "-o", format, "much.yaml")
			peak := 0
			for n := 0; ; n++ {
				if _, more := p.next(); !more {
					break
				}
				p.stdout.Reset() // memory of this test
				if n%1000 == 0 {
					peak = max(peak, resident(t, p.cmd.Process.Pid))
				}
			}
			if err := p.cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, p.stderr.String())
			}
			if peak == 0 || peak > maxResident {
				t.Errorf("it used %d KiB of memory, want at most %d", peak, maxResident)
			}
			show := start(t, dir, "task", "ls", "-o", "json")
			show.end()
			if n := strings.Count(show.stdout.String(), `"stdout_bytes": 50000000,`); n != 2 {
				t.Errorf("%d of 2 tasks recorded the size of their output", n)
			}
		})
	}
}

// resident returns the peak memory of a process in KiB. (The value reported by wait includes the memory of the
// process that forked it.)
func resident(t *testing.T, pid int) int {
	t.Helper()
	status := read(t, fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(status, "VmHWM:")
	var kib int
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		return 0 // it ended
	}
	return kib
}
