package weaver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A new user tries the program of the README first: the test builds it unchanged and runs it twice as
// the README says.
func TestE2EReadmeProgram(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	program, after, closed := strings.Cut(rest, "```\n")
	if !found || !closed || strings.Contains(after, "```go\n") {
		t.Fatal("README.md has not one Go program")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "readme.exe")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, out)
	}
	for _, when := range []string{"first", "second"} {
		run := exec.CommandContext(t.Context(), binary)
		run.Dir, run.Env = dir, append(os.Environ(), "WEAVER_STORE=")
		out, err := run.CombinedOutput()
		if want := "hello Ada, you are number 42 <nil>\n"; err != nil || string(out) != want {
			t.Errorf("the %s run: %v, it printed %q, want %q", when, err, out, want)
		}
	}
}
