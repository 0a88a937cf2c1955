package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// workerCmd is the verb worker, whose flags stand before or behind start.
type workerCmd struct {
	Start workerStartCmd `cmd:"" default:"1" help:"Run the tasks of a store until interrupted; start can be left out."`
	Ls    workerLsCmd    `cmd:"" help:"List the workers of a store, of any machine."`

	Handlers  []string `placeholder:"SET" complete:"app,builtin" help:"Which task types to run: app (those of this program), builtin (commands and URLs), or both. Default: app when this program has any, else builtin."`
	Queue     []string `placeholder:"NAME[=N]" help:"Serve this queue only, at most N tasks of it at once; may be repeated. Default: every queue."`
	UntilIdle bool     `help:"End when nothing is due or running any more; what is due later stays. The exit code is 1 when a task ended failed or blocked."`
	workFlags
}

type workerStartCmd struct{}

// Run implements the verb.
func (workerStartCmd) Run(ctx context.Context, s *session, c *workerCmd) error {
	if err := c.check(); err != nil {
		return err
	}
	logs := new(keptLogs)
	handlers, err := c.handlers(s, logs)
	if err != nil {
		return err
	}
	queues, err := c.queues()
	if err != nil {
		return err
	}
	return s.withWork(ctx, func(st store.Store) error {
		bucket, err := s.bucket(true)
		if err != nil {
			return err
		}
		log := &workLog{w: s.live, clock: s.clock, json: s.json(), output: make(liveOutput)}
		logger := slog.New(slog.NewTextHandler(s.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
		codec, err := s.codec()
		if err != nil {
			return err
		}
		logs.open(s.logFolder(), s.sealedLogs(codec), logger)
		defer logs.close()
		eng, err := weaver.New(st, weaver.Config{
			Namespace:    s.flags.Namespace,
			Handlers:     handlers,
			Concurrency:  c.slots(),
			Queues:       queues,
			DrainTimeout: c.DrainTimeout,
			Logger:       slog.New(engineLog{Handler: logger.Handler()}),
			Sink:         log,
			Bucket:       bucket,
			Decider:      s.app.Decider,
			Router:       s.app.Router,
			Plugins:      append(slices.Clip(s.app.Plugins), schema.Plugin()),
			Codec:        codec,
		})
		if err != nil {
			return badInput("", "%w", err)
		}
		names := make([]string, len(handlers))
		for i, h := range handlers {
			names[i] = h.Name()
		}
		slices.Sort(names)
		names = slices.Compact(names) // of a type with several handlers
		if s.created {
			log.say("there was no store: %s is new, and no task waits in it yet", s.storePlace())
		}
		link := ""
		if l, ok := st.(linked); ok {
			link = " (" + linkOf(l.Direct()) + ")"
		}
		log.say("worker on %s%s, namespace %q, %s: %s", s.store(), link, s.flags.Namespace, text.Plural(c.slots(), "slot"), strings.Join(names, ", "))
		err = c.work(ctx, eng, log)
		log.say("worker stopped: %s", log.summary())
		if err == nil && c.UntilIdle && log.unsuccessful() {
			return silent(exitFailed)
		}
		return err
	})
}

func (c *workerCmd) work(ctx context.Context, eng *weaver.Engine, log *workLog) error {
	g := group.New(context.WithoutCancel(ctx))
	asked, stopListening := listen(ctx, g.Go)
	stopNote := context.AfterFunc(asked.drain, func() {
		log.say("stopping: running tasks may end within %s; interrupt again to stop them now", text.Setting(c.DrainTimeout))
	})
	stopNow := context.AfterFunc(asked.now, func() {
		log.say("stopping now")
		eng.StopNow()
	})
	work := eng.Run
	looking, stopLooking := context.WithCancel(asked.drain)
	defer stopLooking()
	if c.UntilIdle {
		work = func(ctx context.Context) error { return untilIdle(ctx, eng) }
	} else {
		g.Go("questions", func(context.Context) error { return expireWhile(looking, eng.Client) })
	}
	err := work(asked.drain)
	stopLooking()
	stopNote()
	stopNow()
	stopListening()
	return errors.Join(err, g.Wait())
}

// handlers are those that --handlers asks for.
func (c *workerCmd) handlers(s *session, logs *keptLogs) ([]weaver.Handler, error) {
	sets := c.Handlers
	if len(sets) == 0 {
		sets = []string{"builtin"}
		if len(s.app.Handlers) > 0 {
			sets = []string{"app"}
		}
	}
	var app, builtins []weaver.Handler
	for _, set := range sets {
		switch set {
		case "app":
			if len(s.app.Handlers) == 0 {
				return nil, badInput("Use --handlers builtin, or a program of your own that gives its handlers to cli.Main.", "--handlers app: %s has no task types of its own", s.app.Name)
			}
			app = s.app.Handlers
		case "builtin":
			builtins = c.builtins(logs)
		default:
			known := []string{"app", "builtin"}
			return nil, badInput("", "--handlers %q is not known%s; the sets are %s", set, didYouMean(set, known), join(known))
		}
	}
	return appOver(builtins, app), nil
}

// queues are those that --queue names; nil means every queue.
func (c *workerCmd) queues() (map[string]int, error) {
	if len(c.Queue) == 0 {
		return nil, nil
	}
	queues := make(map[string]int, len(c.Queue))
	for _, arg := range c.Queue {
		name, limit, limited := strings.Cut(arg, "=")
		n := c.slots()
		if limited {
			var err error
			if n, err = strconv.Atoi(limit); err != nil || n < 1 {
				return nil, badInput("", "--queue %q: want NAME or NAME=N with N at least 1, for example --queue billing=4", arg)
			}
		}
		switch _, twice := queues[name]; {
		case name == "":
			return nil, badInput("", "--queue %q: the name is empty", arg)
		case twice:
			return nil, badInput("", "--queue %s is given twice", name)
		}
		queues[name] = n
	}
	return queues, nil
}

// workLog prints what a worker does: a line for each start and end of an
// attempt and for each line that a command writes, or with -o json each event
// as an object.
type workLog struct {
	w     io.Writer
	clock explain.Clock
	json  bool

	mu                         sync.Mutex
	encoder                    event.Encoder
	output                     liveOutput
	started, succeeded, failed int
	retrying                   int // failed, with another attempt to come
	allowed                    int // failed, which the job allows
	blocked, cancelled         int
}

// say prints a line about the worker itself; -o json has none.
func (l *workLog) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		return
	}
	l.line(time.Now(), fmt.Sprintf(format, args...))
}

// line prints a line. Its error is dropped: a reader that went away keeps no
// task from running.
func (l *workLog) line(at time.Time, said string) {
	_, _ = fmt.Fprintf(l.w, "%s %s\n", at.In(l.clock.Zone).Format(time.DateTime), text.Printable(said))
}

// Emit implements weaver.Sink.
func (l *workLog) Emit(ev event.Event) {
	if l.json {
		ev = event.Plain(ev)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.count(ev)
	if l.json {
		for _, line := range l.encoder.Lines(ev) {
			_, _ = fmt.Fprintln(l.w, text.PlainJSON(line)) // as in line
		}
		return
	}
	lines := l.output.lines(ev)
	if said == "" && len(lines) == 0 {
		return
	}
	h := ev.Head()
	name := h.TaskID.String() + " " + text.OneLine(cmp.Or(h.Node, h.TaskType), explain.MaxNote)
	for _, line := range lines {
		l.line(h.At, strings.TrimRight(name+"| "+line, " "))
	}
	if said != "" {
		l.line(h.At, name+": "+said)
	}
}

// count keeps the figures and words the event; "" is not worth a line.
func (l *workLog) count(ev event.Event) string {
	switch ev := ev.(type) {
	case event.TaskStarted:
		l.started++
	case event.TaskSucceeded:
		l.succeeded++
	case event.TaskFailed:
		if ev.Allowed {
			l.allowed++
		} else {
			l.failed++
		}
	case event.TaskRetrying:
		l.retrying++
	case event.TaskBlocked:
		l.blocked++
	case event.TaskCancelled:
		l.cancelled++
	}
	return l.clock.Event(withoutOutput(ev), nil)
}

// summary says what became of the attempts.
func (l *workLog) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := fmt.Sprintf("%s run, %d succeeded, %d failed", text.Plural(l.started, "attempt"), l.succeeded, l.failed)
	if l.retrying > 0 {
		said += fmt.Sprintf(", %d failed and to be retried", l.retrying)
	}
	if l.allowed > 0 {
		said += fmt.Sprintf(", %d failed, which the job allows", l.allowed)
	}
	if l.cancelled > 0 {
		said += fmt.Sprintf(", %d cancelled", l.cancelled)
	}
	if l.blocked > 0 {
		said += fmt.Sprintf(", %d blocked", l.blocked)
	}
	return said
}

// unsuccessful reports whether a task failed, unless its job allows that, or
// waits for a person.
func (l *workLog) unsuccessful() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed+l.blocked > 0
}
