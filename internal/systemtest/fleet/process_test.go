package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/postgres"
)

// childEnv makes this test binary a process of the fleet: its value is a setup as JSON. With arguments it is the weaver
// command, without them a worker.
const childEnv = "WEAVER_FLEET_CHILD"

// setup holds the resources shared by the processes.
type setup struct {
	Store, Redis, Bucket string // URLs
	Ledger               string // path of a file that counts the executions of step functions
}

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	go func() { // no process outlives the test
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if len(os.Args) > 1 {
		cli.Main(cli.App{})
		return
	}
	if err := work(raw); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// work runs a worker until SIGTERM. It prints the counts of its hints.
func work(raw string) error {
	var s setup
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ledger, err := os.OpenFile(s.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	tr, err := redis.New(s.Redis, redis.Options{})
	if err != nil {
		return err
	}
	bucket, err := s3.Open(s.Bucket)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, s.Store)
	if err != nil {
		return err
	}
	w := &worker{ledger: ledger}
	eng, err := weaver.New(db, weaver.Config{
		Concurrency: 16, CrashBudget: -1, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Plugins:  []weaver.Plugin{schema.Plugin()}, // for clients over HTTP
		Delivery: tr, NoPublisher: true, RedeliverAfter: 2 * time.Second, Bucket: bucket,
		Handlers: []weaver.Handler{steps.Handler(w.steps), pack.Handler(w.pack)},
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	go func() {
		for range time.Tick(250 * time.Millisecond) {
			h := eng.Hints()
			fmt.Printf("hints %d %d\n", h.Popped, h.Useless)
		}
	}()
	return errors.Join(eng.Run(ctx), db.Close(), tr.Close(), ledger.Close())
}

// process is one place of the fleet: a process that is started again whenever it ended.
type process struct {
	t      testing.TB
	role   string
	args   []string
	setup  setup
	cmd    *exec.Cmd
	in     io.Closer
	ended  chan struct{} // closed when the process has ended
	starts int

	mu              sync.Mutex
	said            bytes.Buffer // since its start
	counts          bool         // whether it has said how many hints it had
	url             string       // that it serves, with a slash; "" while it is not known
	popped, useless int64        // since its start
}

var anURL = regexp.MustCompile(`http://[0-9.:]+/`)

func (p *process) start() {
	p.t.Helper()
	raw, err := json.Marshal(p.setup)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.ended = exec.Command(os.Args[0], p.args...), make(chan struct{})
	p.cmd.Dir = p.t.TempDir()
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw),
		"WEAVER_STORE="+p.setup.Store, "WEAVER_DELIVERY="+p.setup.Redis, "WEAVER_BUCKET="+p.setup.Bucket, "XDG_STATE_HOME="+p.cmd.Dir, "GORACE=atexit_sleep_ms=0")
	in, err1 := p.cmd.StdinPipe()
	out, w, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := errors.Join(p.cmd.Start(), w.Close()); err != nil {
		p.t.Fatal(err)
	}
	p.in = in
	p.starts++
	p.mu.Lock()
	p.said, p.url, p.counts = bytes.Buffer{}, "", false
	p.mu.Unlock()
	ended := p.ended
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.hear(lines.Text())
		}
		_ = out.Close()
		close(ended)
	}()
}

func (p *process) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var popped, useless int64
	if n, _ := fmt.Sscanf(line, "hints %d %d", &popped, &useless); n == 2 {
		p.popped, p.useless, p.counts = popped, useless, true
		return
	}
	p.said.WriteString(line + "\n")
	if p.url == "" && p.role != "worker" {
		p.url = anURL.FindString(line)
	}
}

func (p *process) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// ready reports whether the process has started, so that it ends in order on SIGTERM.
func (p *process) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url != "" || p.counts
}

// kill ends the process like kill -9, or waits for one that has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.wait()             // it was killed, or failed
}

// wait waits for the end of the process, and returns whether it ended without an error.
func (p *process) wait() error {
	<-p.ended
	_ = p.in.Close()
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, word := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
		if strings.Contains(p.said.String(), word) {
			p.t.Errorf("%s %v:\n%s", p.role, p.args, p.said.String())
			break
		}
	}
	return err
}

// gone returns whether the process has ended by itself.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// drain asks the process to end.
func (p *process) drain() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s: %v", p.role, err)
	}
	if err := p.wait(); err != nil {
		p.t.Errorf("%s ended: %v\n%s", p.role, err, p.said.String())
	}
}
