package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/devrun"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// devCmd is the verb dev.
type devCmd struct {
	Program []string `arg:"" optional:"" name:"program" help:"Your program and its arguments, after --."`

	Addr             string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the HTTP API; default 127.0.0.1:8080."`
	Slots            *int          `placeholder:"N" help:"Concurrent builtin tasks; default: CPUs, at least 4."`
	DrainTimeout     time.Duration `default:"10s" placeholder:"DURATION" help:"Grace period of your program and tasks; default 10s."`
	NoPrivateNetwork bool          `help:"Public addresses only, for http tasks."`
}

// Help is shown by dev --help.
func (devCmd) Help() string {
	return "One command for the machine of a developer. It creates a missing store, serves the dashboard and the HTTP API with a new token, runs the " +
		"builtin task types, and runs your program and prints its output. Your program opens the store that WEAVER_STORE names " +
		"(store/sqlite and store/postgres accept its value). When a .go file of its module changes, the program is built. If the build " +
		"succeeds, the old process gets SIGTERM, its handlers end before their next step or after 2s, and the new process continues " +
		"the tasks. A program that fails restarts by itself, with a pause that doubles. Port 0 of --addr picks a free port.\n\n  " +
		"weaver dev -- go run ./cmd/app"
}

// Run implements the verb.
func (c *devCmd) Run(ctx context.Context, s *session) error {
	if !s.named {
		s.flags.Store = defaultStore(".") // even if the program's arguments name files elsewhere
	}
	if s.json() {
		return badInput("`"+s.app.Name+" serve -o json` and `"+s.app.Name+" worker -o json` print for programs.", "dev prints lines for people")
	}
	work := &workFlags{Slots: c.Slots, DrainTimeout: c.DrainTimeout, addressFlags: addressFlags{NoPrivateNetwork: c.NoPrivateNetwork}}
	if err := work.check(); err != nil {
		return err
	}
	out := devrun.NewOutput(s.live)
	var runner *devrun.Runner
	if len(c.Program) > 0 {
		env, err := s.programEnv()
		if err != nil {
			return err
		}
		if runner, err = devrun.New(devrun.Config{Command: c.Program, Env: env, Output: out, DrainTimeout: c.DrainTimeout}); err != nil {
			return badInput("", "%w", err)
		}
	}
	token, line := httpapi.NewToken("dev", httpapi.Full)
	tokens, err := httpapi.ReadTokens(strings.NewReader(line))
	if err != nil {
		return err
	}
	door, err := listenOn(c.Addr, credentials{authorize: tokens.Authorize, tokens: tokens})
	if err != nil {
		return err
	}
	defer door.close()
	return s.withWork(ctx, func(st store.Store) error {
		logs, tasks, dev := new(keptLogs), sourceWriter{out, "tasks"}, sourceWriter{out, "dev"}
		defer logs.close()
		say := func(format string, args ...any) { out.Print("dev", fmt.Sprintf(format, args...)) }
		p := process{say: say, door: door, drain: c.DrainTimeout}
		log := s.workLog()
		log.w, log.bare = tasks, true
		handlers := appOver(work.builtins(logs), s.app.Handlers)
		var err error
		if p.eng, err = s.newEngine(st, engineParts{handlers: handlers, flags: work, log: log, logs: logs, errs: dev, door: door}); err != nil {
			return err
		}
		announce(ctx, p.eng)
		door.addresses = work.addressFlags
		if err := door.open(s, p.eng.Client, dev); err != nil {
			return err
		}
		keepEvents(ctx, p.eng.Client, nil, say)
		is := "is"
		if s.created {
			is = "is new"
		}
		say("the store %s: %s", is, s.storePlace())
		say("open %s#token=%s", door.url(), token)
		say("or   curl -H 'Authorization: Bearer %s' %sv1/tasks", token, door.url())
		if !door.loopback() {
			say("--addr %s: other machines reach it over plain HTTP, and anyone with the token can run commands here; 127.0.0.1 is for this machine only", c.Addr)
		}
		say("%s for %s", text.Plural(work.slots(), "slot"), strings.Join(namesOf(handlers), ", "))
		if runner != nil {
			p.more = append(p.more, part{"program", func(drain, now context.Context) error {
				defer context.AfterFunc(now, runner.StopNow)()
				return runner.Run(drain)
			}})
		} else {
			say("no program is run: add one, for example %s dev -- go run ./cmd/app", s.app.Name)
		}
		err = s.untilGone(ctx, st, devGoneAfter, warnings(dev), p.run)
		say("stopped; the tasks are in %s, and the next start continues them", s.storePlace())
		return err
	})
}

// sourceWriter writes lines under the name of a source.
type sourceWriter struct {
	out    *devrun.Output
	source string
}

// Write implements io.Writer. Callers write whole lines.
func (w sourceWriter) Write(p []byte) (int, error) {
	w.out.Print(w.source, string(p))
	return len(p), nil
}

// programEnv returns an environment that gives a program, in any folder, the same store, keys and bucket.
func (s *session) programEnv() ([]string, error) {
	p, err := placeOf(s.flags.Store)
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(), "WEAVER_DEV=1", "WEAVER_NAMESPACE="+s.flags.Namespace)
	abs := func(path string) string {
		full, failed := filepath.Abs(path)
		err = errors.Join(err, failed)
		return full
	}
	env = append(env, "WEAVER_STORE="+p.url())
	if s.flags.CodecKey != "" {
		env = append(env, "WEAVER_CODEC_KEY="+abs(s.flags.CodecKey))
	}
	if s.flags.Delivery != "" {
		env = append(env, "WEAVER_DELIVERY="+s.flags.Delivery)
	}
	if folder, found := strings.CutPrefix(s.flags.Bucket, "dir:"); found {
		env = append(env, "WEAVER_BUCKET=dir:"+abs(folder))
	} else if s.flags.Bucket != "" {
		env = append(env, "WEAVER_BUCKET="+s.flags.Bucket)
	}
	return env, err
}
