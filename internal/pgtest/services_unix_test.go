//go:build unix

package pgtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// make services prints nothing if everything is installed. If a program is missing and the
// script may not install it, it prints the command that does.
func TestServicesScript(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs PostgreSQL and PgBouncer")
	}
	script := filepath.Join("..", "..", "scripts", "services.sh")
	if out, err := exec.Command("bash", script).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("with everything there: %v, %q", err, out)
	}

	bin := t.TempDir() // the script's PATH: no apt-get, no server
	for _, name := range []string{"bash", "cat", "dirname", "id"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", script)
	cmd.Env = []string{"PATH=" + bin, "WEAVER_POSTGRES_BIN=" + bin}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("without a server: %v, want exit code 1", err)
	}
	for _, part := range []string{
		"The tests need postgresql", "PostgreSQL 13 or later", "apt-get install -y --no-install-recommends postgresql",
		"brew install", "WEAVER_POSTGRES_BIN=",
	} {
		if !strings.Contains(string(out), part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
}
