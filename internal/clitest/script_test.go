package clitest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// TestMain makes this binary also the programs of the sessions. With -short no test runs: each starts programs.
func TestMain(m *testing.M) {
	testscript.Main(unlessShort{m}, map[string]func(){
		"weaver": func() { cli.Main(cli.App{}) },
		"acme": func() {
			cli.Main(cli.App{Name: "acme", Version: "v1.2.3", Handlers: ownHandlers(), Router: byVoice, Deciders: map[string]decide.Decider{"never": neverAgain, "careless": careless}})
		},
		"curl":  curl,
		"jq":    jq,
		"twice": func() { cli.Main(cli.App{Handlers: builtin.Handlers(builtin.Config{})}) },
	})
}

// byVoice is a Router that sends tasks with a label to another handler.
var byVoice = decide.Rules{{Labels: map[string]string{"voice": "loud"}, Handler: "loud"}}

// neverAgain is a Decider that marks every task dead after its first failure.
var neverAgain = decide.Func(func(decide.Input) decide.Decision {
	return decide.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Policy: "never", Version: 1, Text: "never again"}}
})

// careless is a Decider that leaks the input of the task in its reason.
var careless = decide.Func(func(in decide.Input) decide.Decision {
	return decide.Decision{Kind: task.DecideBlock, Reason: task.Reason{Policy: "careless", Version: 1, Text: "was given " + string(in.Task.Input)}}
})

type unlessShort struct{ *testing.M }

func (m unlessShort) Run() int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the tests of programs are not run with -short: make test runs them")
		return 0
	}
	return m.M.Run()
}

func TestSessions(t *testing.T) {
	t.Parallel()
	testscript.Run(t, sessions(t, "testdata", func(*testscript.Env) error { return nil }))
}

// runs matches a session line that runs a program. concurrent matches a line that runs one concurrently with others, or
// on a terminal.
var (
	runs       = regexp.MustCompile(`(?m)^!? ?(exec|fails|serve|tty) `)
	concurrent = regexp.MustCompile(`(?m)( &(\w+&)? *$|^!? ?(serve|tty) )`)
)

// isConcurrent reports whether at least one in fifteen programs of a session runs concurrently with others, or on a
// terminal. The race detector would only slow the other sessions down.
func isConcurrent(session string) bool {
	n := len(concurrent.FindAllString(session, -1))
	return n > 0 && n*15 >= len(runs.FindAllString(session, -1))
}

// sessions returns the sessions of a folder. Under the race detector it returns only concurrent ones: the others take
// minutes there and run one program at a time. setup is called for each session.
func sessions(t *testing.T, dir string, setup func(*testscript.Env) error) testscript.Params {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if underRace {
		files = slices.DeleteFunc(files, func(file string) bool { return !isConcurrent(read(t, file)) })
	}
	return testscript.Params{
		Files: files,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": fails,
			"seed":  seed,
			"serve": serve,
			"sql":   runSQL,
			"tty":   tty,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("USER", "tester")
			env.Setenv("GOCACHE", goCache())
			env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each of the many programs ends a second late
			return setup(env)
		},
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	}
}

// goCache returns the build cache of the go command, which sessions share with this test.
func goCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return cmp.Or(os.Getenv("GOCACHE"), filepath.Join(dir, "go-build"))
}

// payment is an input with a masked field.
type payment struct {
	Card string `json:"card" weaver:"redact"`
	Note string `json:"note"`
}

// ownHandlers returns the handlers of a program other than the weaver command.
func ownHandlers() []weaver.Handler {
	greet := weaver.Define[string, string]("acme.demo.greet.v1")
	fail := weaver.Define[weaver.None, weaver.None]("acme.demo.fail.v1", weaver.NoRetry(), weaver.Queue("fragile"))
	ship := weaver.Define[string, string]("acme.demo.ship.v1")
	approved := weaver.DefineSignal[string]("approved")
	link := weaver.Define[int64, weaver.ArtifactRef]("acme.demo.link.v1", weaver.NoRetry())
	pay := weaver.Define[payment, payment]("acme.demo.pay.v1", weaver.NoRetry())
	return []weaver.Handler{
		ship.Handler(func(ctx context.Context, version string) (string, error) {
			who, _, err := approved.Wait(ctx, "manager", 0)
			if err != nil {
				return "", err
			}
			outs, err := weaver.CallAll(ctx, "greetings", greet, []string{"1", "2", "3"})
			return fmt.Sprintf("%s approved by %s: %v", version, who, outs), err
		}),
		link.Handler(func(ctx context.Context, size int64) (weaver.ArtifactRef, error) {
			return weaver.LinkArtifact(ctx, "scans/a.pdf", task.Link{URL: "https://me:pass@example.com/a.pdf?sig=secret-1", Size: size}, weaver.ContentType("application/pdf"))
		}),
		pay.Handler(func(ctx context.Context, in payment) (payment, error) {
			weaver.Log(ctx).Info("pays with "+in.Card, "payment", in)
			got, err := weaver.Step(ctx, "charge", func(context.Context) (payment, error) { return in, nil })
			if err != nil || got.Note == "refused" {
				return got, fmt.Errorf("the card %s was refused", got.Card)
			}
			return got, nil
		}),
		greet.Handler(func(_ context.Context, name string) (string, error) { return "hello " + name, nil }),
		greet.Handler(func(_ context.Context, name string) (string, error) { return "HELLO " + name, nil }, weaver.HandlerName("loud")),
		fail.Handler(func(context.Context, weaver.None) (weaver.None, error) { return weaver.None{}, errors.New("as always") }),
	}
}

// serve starts a web server and sets the variable URL to its address:
//
//	serve     # GET /data.csv answers rows, GET /echo JSON, GET /job is done at the fourth call, everything else 200
//
// It records all requests except GET /data.csv and GET /job in the file requests, one per line.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: serve")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data.csv", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a,1\nb,2\n") })
	var mu sync.Mutex
	requests := ts.MkAbs("requests")
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(requests, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s %s text=%s\n", r.Method, r.URL.RequestURI(), body)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
		} else if r.URL.Path == "/echo" {
			_, _ = io.WriteString(w, `{"n": 7}`)
		}
	})
	polls := 0
	mux.HandleFunc("GET /job", func(w http.ResponseWriter, _ *http.Request) {
		said := [...]string{"queued", "running", "running", "done"}
		_, _ = io.WriteString(w, `{"status": "`+said[min(polls, len(said)-1)]+`"}`)
		polls++
	})
	server := httptest.NewServer(mux)
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL)
}

// fails runs a program that must end with an exit code:
//
//	fails 2 weaver task ls --limit 0
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code := exitCode(ts, ts.Exec(args[1], args[2:]...)); code != want {
		ts.Fatalf("the exit code is %d, want %d", code, want)
	}
}
