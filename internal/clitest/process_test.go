package clitest_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is the weaver command as a separate process in its own folder. Its standard output is read while it runs.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	stdout bytes.Buffer // the standard output so far
	stderr bytes.Buffer
}

// apart waits until the program counts another signal as a second one.
func apart() { <-time.After(2 * time.Second) }

// program returns the path of the weaver command, which is this test's binary.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weaver")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startProgram(t, dir, program(t), args...)
}

func startProgram(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, dir, name, args...)
}

func startWith(t *testing.T, attr *syscall.SysProcAttr, dir, name string, args ...string) *process {
	t.Helper()
	heedSignals()
	p := &process{T: t, cmd: exec.Command(name, args...)}
	p.cmd.SysProcAttr = attr
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "WEAVER_STORE=", "WEAVER_NAMESPACE=", "WEAVER_BUCKET=", "XDG_STATE_HOME="+filepath.Join(dir, "state"), "TZ=UTC", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A test that hangs ends with a stack dump of the program. The builds of the tests of `make e2e` take minutes.
	dump := func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) }
	tooLong := time.AfterFunc(4*time.Minute, dump)
	if os.Getenv("WEAVER_E2E") != "" {
		tooLong.Reset(15 * time.Minute)
	}
	t.Cleanup(func() {
		tooLong.Stop()
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// heedSignals makes programs started by this process react to the signals that end them, even if the tests run under
// nohup: an ignored signal is inherited, a caught one is not.
var heedSignals = sync.OnceFunc(func() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// next reads a line of the standard output; it returns false at the end.
func (p *process) next() (string, bool) {
	line, err := p.out.ReadString('\n')
	p.stdout.WriteString(line)
	return strings.TrimSuffix(line, "\n"), err == nil
}

// await reads until a line contains text, and returns that line.
func (p *process) await(text string) string {
	p.Helper()
	for {
		line, more := p.next()
		if strings.Contains(line, text) {
			return line
		}
		if !more {
			p.Fatalf("the output ended before %q:\n%s%s", text, p.stdout.String(), p.stderr.String())
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// end reads to the end and returns the exit code, −1 after a signal.
func (p *process) end() int {
	p.Helper()
	for {
		if _, more := p.next(); !more {
			break
		}
	}
	_ = p.cmd.Wait() // the exit code shows the error
	return p.cmd.ProcessState.ExitCode()
}

// says checks the output of an ended process.
func (p *process) says(texts ...string) {
	p.Helper()
	all := p.stdout.String() + p.stderr.String()
	for _, text := range texts {
		if !strings.Contains(all, text) {
			p.Errorf("it does not say %q:\n%s", text, all)
		}
	}
}

// saysOne fails unless the process has written one of the texts.
func (p *process) saysOne(texts ...string) {
	p.Helper()
	all := p.stdout.String() + p.stderr.String()
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(all, text) }) {
		return
	}
	p.Errorf("it says none of %q:\n%s", texts, all)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}
