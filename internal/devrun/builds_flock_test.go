//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package devrun_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/devrun"
)

// A killed process leaves its builds behind. The next run removes them, and keeps those of live processes and unknown
// folders.
func TestBuildsOfTheKilledAreRemoved(t *testing.T) {
	t.Parallel()
	temp, w := t.TempDir(), newWitness(t)
	builds := func() string {
		t.Helper()
		entries, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(w.env("runner"), "GOTMPDIR="+temp)
	s := &screen{more: make(chan struct{})}
	cmd.Stdout = s
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.next(t, "stubborn runs")
	killed := builds()
	if !strings.HasPrefix(killed, "weaver-dev-") || strings.Contains(killed, " ") {
		t.Fatalf("a runner makes %q", killed)
	}

	c := devrun.Config{Dir: t.TempDir(), Command: []string{"sleep", "60"}, Env: append(os.Environ(), "GOTMPDIR="+temp)}
	first := start(t, c)
	first.next(t, "started as process")
	both := strings.Fields(builds())
	if len(both) != 2 || !strings.Contains(builds(), killed) {
		t.Fatalf("beside one that lives there are %q", both)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	w.gone(t, 3)

	write(t, filepath.Join(temp, "weaver-dev-unknown", "file"), "x")
	write(t, filepath.Join(temp, "weaver-dev-x"), "x")
	link := filepath.Join(temp, "weaver-dev-y")
	if err := os.Symlink(filepath.Join(temp, killed), link); err != nil {
		t.Fatal(err)
	}
	second := start(t, c)
	second.next(t, "started as process")
	mine := strings.Join(both, " ")
	mine = strings.TrimSpace(strings.Replace(mine, killed, "", 1))
	if now := builds(); strings.Contains(now, killed) || !strings.Contains(now, mine) || len(strings.Fields(now)) != 5 {
		t.Errorf("after the kill of %s, beside %s, there are %s", killed, mine, now)
	}
	first.stop(t)
	second.stop(t)
	if now := builds(); now != "weaver-dev-unknown weaver-dev-x weaver-dev-y" {
		t.Errorf("in the end there are %q", now)
	}
}
