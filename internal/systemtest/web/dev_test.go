package web_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/cli"
)

// weaverEnv makes the test program the command weaver.
const weaverEnv = "WEAVER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(weaverEnv) != "" {
		cli.Main(cli.App{})
		return
	}
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

// The link that `weaver dev` prints opens the dashboard, signed in. The page shows the first task of the README's
// program when it runs. Its handler is edited while the task sleeps; started from the page, the task continues in the
// new code, and the page shows that without a reload.
func TestE2EDevPage(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	dir := readmeModule(t,
		`	return fmt.Sprintf("hello %s, you`, `	if err == nil {
		err = weaver.Sleep(ctx, "pause", time.Hour)
	}
	return fmt.Sprintf("old code: %s, you`,
		`	"os"`+"\n", `	"os"`+"\n	\"time\"\n",
		"check(eng.RunUntilIdle(ctx)) // a service calls eng.Run(ctx) instead", "fmt.Println(\"engine one\")\n	check(eng.Run(ctx))",
	)
	lines := dev(t, dir)
	_, link, _ := strings.Cut(await(t, lines, "#token="), "open ")
	b := openTab(t)
	b.visit(strings.TrimSpace(link))
	b.ready()
	eval[bool](b, "window.kept = true")
	b.click("nav[aria-label=Pages] a", "Tasks")
	b.until(`document.querySelector("tr[data-id]")?.innerText.includes("acme.demo.greet.v1")`)
	b.click("tr[data-id] a", "acme.demo.greet.v1")
	b.until(`document.querySelector("main .task-sub")?.innerText.match(/sleep/)`)
	b.click("[role=tab]", "Values")

	await(t, lines, "engine one")
	main := filepath.Join(dir, "main.go")
	program, err := os.ReadFile(main)
	if err == nil {
		err = os.WriteFile(main, []byte(strings.NewReplacer("old code", "new code", "engine one", "engine two").Replace(string(program))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, lines, "engine two")
	b.click("main button", "Start now or later")
	b.click("dialog button[type=submit]", "Start now")
	b.until(`document.querySelector("main .task-sub")?.innerText.match(/succeeded/)`)
	b.until(`document.querySelector("main").innerText.includes("new code: Ada, you are number 42")`)
	if !eval[bool](b, "window.kept === true") {
		t.Error("the page was loaded again")
	}
}

// readmeModule creates a module that uses this repository, with the README's program. change holds pairs of old and
// new text.
func readmeModule(t *testing.T, change ...string) (dir string) {
	t.Helper()
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, rest, found := strings.Cut(file("README.md"), "```go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("README.md has no Go program")
	}
	for i := 0; i < len(change); i += 2 {
		if strings.Count(program, change[i]) != 1 {
			t.Fatalf("the program of README.md has %q %d times, want once:\n%s", change[i], strings.Count(program, change[i]), program)
		}
		program = strings.Replace(program, change[i], change[i+1], 1)
	}
	dir = t.TempDir()
	mod := strings.Replace(file("go.mod"), "module github.com/goweaver/weaver", "module example.com/app", 1)
	for name, text := range map[string]string{
		"main.go": program, "go.sum": file("go.sum"),
		"go.mod": mod + "\nrequire github.com/goweaver/weaver v0.0.0\n\nreplace github.com/goweaver/weaver => " + repo + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// dev starts `weaver dev` for the program of a folder, and returns its output.
func dev(t *testing.T, dir string) <-chan string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "dev", "--addr", "127.0.0.1:0", "--", "go", "run", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), weaverEnv+"=1")
	return linesOf(t, cmd)
}

// linesOf starts a program, and returns its output. The program is interrupted at the end of the test.
func linesOf(t *testing.T, cmd *exec.Cmd) <-chan string {
	t.Helper()
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10_000) // all of them
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // however it ended
		_ = w.Close()
	})
	return lines
}

// await returns the next line with a text.
func await(t *testing.T, lines <-chan string, text string) string {
	t.Helper()
	late := time.After(5 * time.Minute)
	var seen []string
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("it ended without %q:\n%s", text, strings.Join(seen, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
			seen = append(seen, line)
		case <-late:
			t.Fatalf("it never printed %q:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}
