package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// childEnv makes this test binary a process of a test. Its value is the orders as JSON.
const childEnv = "WEAVER_EVENTS_CHILD"

// orders is the configuration of a process.
type orders struct {
	Role  string // worker or api
	Store string // the URL of a PostgreSQL database, or the path of a file
	Addr  string // of the api
}

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	if err := child(raw); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// database is a store of a test.
type database interface {
	store.Store
	Close() error
}

func open(ctx context.Context, at string) (database, error) {
	if strings.HasPrefix(at, "postgres://") {
		return postgres.Open(pgharness.With(ctx, pgharness.Settings{FsyncOff: true}), at)
	}
	return sqlite.Open(ctx, at, sqlite.Synchronous(sqlite.Normal))
}

// child runs a process until its input ends.
func child(raw string) error {
	var o orders
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	db, err := open(ctx, o.Store)
	if err != nil {
		return err
	}
	run := work
	if o.Role == "api" {
		run = serve
	}
	return errors.Join(run(ctx, db, o), db.Close())
}

// ping is the type of the tasks that run; the others are in a queue without a worker.
var (
	ping = weaver.Define[int, int]("acme.events.ping.v1", weaver.MaxAttempts(100))
	end  = weaver.Define[int, int]("acme.events.end.v1", weaver.Queue("nobody"))
	held = weaver.Define[int, int]("acme.events.held.v1", weaver.Queue("nobody")) // enqueued in a transaction that stays open for a while
)

func work(ctx context.Context, db database, _ orders) error {
	eng, err := weaver.New(db, weaver.Config{
		Concurrency: 50, Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Plugins: []weaver.Plugin{weaver.PersistLogs()},
		Handlers: []weaver.Handler{ping.Handler(func(ctx context.Context, n int) (int, error) {
			if n%10 == 0 {
				weaver.Log(ctx).Info("a tenth of the tasks says so", "n", n)
			}
			if n%50 == 0 && weaver.Current(ctx).AttemptNo == 1 {
				return 0, weaver.RetryAfter(0, errors.New("once more"))
			}
			return n, nil
		})},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return eng.Run(ctx)
}

func serve(ctx context.Context, db database, o orders) error {
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		return err
	}
	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: httpapi.Open(httpapi.Principal{Name: "reader", Access: httpapi.Read})})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: api, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	fmt.Println("ready")
	<-ctx.Done()
	api.Stop()
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = srv.Shutdown(last)
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// process is a running child.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.Closer
	says *strings.Builder
	gone bool
}

// start starts a process and waits until it is ready.
func start(t *testing.T, o orders) *process {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, cmd: exec.Command(os.Args[0]), says: new(strings.Builder)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	p.cmd.Stderr = p.says
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in = in
	t.Cleanup(p.end)
	if n, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatalf("the %s said %d bytes: %v", o.Role, n, err)
	}
	return p
}

// kill ends the process like kill -9.
func (p *process) kill() {
	p.Helper()
	p.gone = true
	if err := p.cmd.Process.Kill(); err != nil {
		p.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
	_ = p.in.Close()
}

// end asks the process to end.
func (p *process) end() {
	if p.gone {
		return
	}
	p.gone = true
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("a process ended: %v\n%s", err, p.says)
	}
}
