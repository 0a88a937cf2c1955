package clitest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// devModule creates a module that uses this repository, with the README's program. change holds pairs of old and new
// text.
func devModule(t *testing.T, change ...string) (dir string) {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(read(t, filepath.Join(repo, "README.md")), "```go\n")
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
	write(t, filepath.Join(dir, "main.go"), program)
	mod := strings.Replace(read(t, filepath.Join(repo, "go.mod")), "module github.com/goweaver/weaver", "module example.com/app", 1)
	write(t, filepath.Join(dir, "go.mod"), mod+"\nrequire github.com/goweaver/weaver v0.0.0\n\nreplace github.com/goweaver/weaver => "+repo+"\n")
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(repo, "go.sum")))
	return dir
}

// devStart starts `weaver dev` for the program of a folder, and returns the URL of its API and the token.
func devStart(t *testing.T, dir string) (p *process, url, token string) {
	t.Helper()
	p = start(t, dir, "dev", "--addr", "127.0.0.1:0", "--", "go", "run", ".")
	said := regexp.MustCompile(`(http://\S+/)#token=(\S+)`).FindStringSubmatch(p.await("#token="))
	if said == nil {
		t.Fatal("no URL with a token")
	}
	return p, said[1], said[2]
}

// The README's program under `weaver dev`: its handler is edited while a task sleeps between two steps, and the task
// continues in the new code. After a kill and a restart dev finds all tasks.
func TestE2EDev(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	const old = `id, err := weaver.Step(ctx, "reserve-id", func(ctx context.Context) (int, error) { return 42, nil }) // runs once, ever`
	const asleep = `id, err := weaver.Step(ctx, "reserve-id", func(ctx context.Context) (int, error) { fmt.Println("step one"); return 42, nil })
	if err == nil {
		err = weaver.Sleep(ctx, "pause", 15*time.Second)
	}
	if err != nil {
		return "", err
	}
	fmt.Println("the old code goes on")`
	dir := devModule(t,
		old, asleep,
		`	"os"`+"\n", `	"os"`+"\n	\"time\"\n",
		"check(eng.RunUntilIdle(ctx)) // a service calls eng.Run(ctx) instead", "go func() { check(eng.Run(ctx)) }()",
	)
	p, url, token := devStart(t, dir)
	p.await("app   | step one")
	main := filepath.Join(dir, "main.go")
	write(t, main, strings.ReplaceAll(strings.ReplaceAll(read(t, main), "the old code goes on", "the new code goes on"), "step one", "step one again"))
	p.await("main.go changed; building .")
	p.await("app   | the new code goes on")
	p.await("app   | hello Ada, you are number 42 <nil>")

	// The API returns the task, and refuses a request without the token.
	if status, body := request(t, url+"v1/tasks?q=type:acme.demo.greet.v1", token); status != http.StatusOK || !strings.Contains(body, `"state":"succeeded"`) || !strings.Contains(body, `"step_count":2`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := request(t, url+"v1/tasks", ""); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	p.signal(syscall.SIGKILL)
	p.end()
	if all := p.stdout.String(); strings.Contains(all, "step one again") || strings.Contains(all, "old code goes on") {
		t.Errorf("what was done is done again:\n%s", all)
	}

	p, url, token = devStart(t, dir)
	p.await("app   | hello Ada, you are number 42 <nil>") // the key finds the finished task
	if status, body := request(t, url+"v1/tasks", token); status != http.StatusOK || strings.Count(body, `"id"`) != 1 {
		t.Errorf("the second start: %d %s", status, body)
	}
	p.signal(syscall.SIGINT)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	p.says("stopping: ", "stopped; the tasks are in "+filepath.Join(dir, "weaver.db"))
	if strings.Contains(p.stdout.String(), "step one") {
		t.Errorf("it ran again:\n%s", p.stdout.String())
	}
}

// The old program gets time to drain before the new one starts, and its last output is printed.
func TestDevDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.sh"), `trap 'echo drained; exit 0' TERM
echo "up with $WEAVER_STORE $WEAVER_NAMESPACE"
while :; do sleep 0.05; done
`)
	conf := filepath.Join(dir, "sub", "conf.yaml") // an argument of the program, not a pipeline with a store next to it
	if err := os.Mkdir(filepath.Dir(conf), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, conf, "")
	p := start(t, dir, "dev", "--addr", "127.0.0.1:0", "--namespace", "mine", "--", "sh", "app.sh", "sub/conf.yaml")
	p.await("app   | up with sqlite:" + filepath.Join(dir, "weaver.db") + " mine")
	write(t, filepath.Join(dir, "x.go"), "package x\n")
	p.await("x.go changed")
	p.await("app   | drained")
	p.await("app   | up with ")
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stdout.String())
	}
	if n := strings.Count(p.stdout.String(), "| drained"); n != 2 {
		t.Errorf("it drained %d times, want twice:\n%s", n, p.stdout.String())
	}
}

// The second interrupt kills a program that does not end.
func TestDevStopsNow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.sh"), "trap 'echo no' TERM\necho up\nwhile :; do sleep 0.05; done\n")
	p := start(t, dir, "dev", "--addr", "127.0.0.1:0", "--drain-timeout", "1h", "--", "sh", "app.sh")
	p.await("app   | up")
	p.signal(syscall.SIGINT)
	p.await("app   | no")
	apart()
	p.signal(syscall.SIGINT)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stdout.String())
	}
	p.says("stopping: running work may end within 1h; interrupt again to stop it now", "stopping now")
}

// An address that cannot be listened on is reported as such. An address that other machines can reach causes a
// warning.
func TestDevAddress(t *testing.T) {
	t.Parallel()
	for addr, says := range map[string][]string{
		"127.0.0.1:99999":         {`port "99999": want a number from 0 to 65535`, "Write HOST:PORT"},
		"127.0.0.1:-1":            {`port "-1"`},
		"nosuchhost.invalid:80":   {"nosuchhost.invalid", "an address of this machine: 127.0.0.1"},
		"192.0.2.1:0":             {"192.0.2.1", "an address of this machine: 127.0.0.1"},
		"127.0.0.1":               {"missing port", "Write HOST:PORT"},
		"127.0.0.1:nosuchservice": {`port "nosuchservice"`},
	} {
		p := start(t, t.TempDir(), "dev", "--addr", addr)
		if code := p.end(); code != 2 {
			t.Errorf("--addr %s: exit code %d", addr, code)
		}
		if p.says(says...); strings.Contains(p.stderr.String(), "Another port") {
			t.Errorf("--addr %s: %s", addr, p.stderr.String())
		}
	}
	const warning = "--addr 0.0.0.0:0: other machines reach it over plain HTTP, and anyone with the token can run commands here"
	for addr, want := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false, "localhost:0": false} {
		p := start(t, t.TempDir(), "dev", "--addr", addr)
		p.await("no program is run")
		p.signal(syscall.SIGTERM)
		p.end()
		if strings.Contains(p.stdout.String(), warning) != want {
			t.Errorf("--addr %s: the warning is wanted (%t):\n%s", addr, want, p.stdout.String())
		}
	}
}

// `weaver browser init` writes a program that runs on this machine, and serves its page.
func TestE2EBrowserInit(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	t.Parallel()
	dir := devModule(t)
	if err := os.Remove(filepath.Join(dir, "main.go")); err != nil {
		t.Fatal(err)
	}
	p := start(t, dir, "browser", "init", ".")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.stderr.String())
	}
	main := filepath.Join(dir, "main.go")
	write(t, main, strings.Replace(read(t, main), "browser.Config{", `browser.Config{Addr: "127.0.0.1:0", `, 1))
	app := filepath.Join(dir, "app")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", dir, "-o", app, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p = startProgram(t, dir, app)
	url, _, _ := strings.Cut(p.await("http://"), " ")
	if status, body := request(t, url, ""); status != http.StatusOK || !strings.Contains(body, "app.js") {
		t.Errorf("the page: %d %s", status, body)
	}
	_, script := request(t, url+"app.js", "")
	name := regexp.MustCompile(`enqueue\("([^"]+)"`).FindStringSubmatch(script)
	if name == nil {
		t.Fatalf("app.js enqueues nothing:\n%s", script)
	}
	status, body := request(t, url+"v1/tasks", "", `{"task_type": "`+name[1]+`", "input": 1}`)
	if status != http.StatusCreated && status != http.StatusOK {
		t.Fatal(status, body)
	}
	for !strings.Contains(body, `"state":"succeeded"`) {
		apart()
		_, body = request(t, url+"v1/tasks", "")
	}
	p.signal(syscall.SIGINT)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.stderr.String())
	}
}
