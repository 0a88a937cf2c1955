package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// workerCmd is the verb worker. Its flags stand before or after start.
type workerCmd struct {
	Start workerStartCmd `cmd:"" default:"1" help:"Run the tasks of a store until interrupted (the default)."`
	Ls    workerLsCmd    `cmd:"" help:"List the workers of a store on all machines."`

	Roles []string `default:"tasks" placeholder:"ROLE" complete:"tasks,orders" help:"Roles: tasks, orders; default tasks."`
	workerFlags
	goneFlag
	healthFlag
	UntilIdle bool `help:"End when no task is due or running."`
	workFlags
}

// workerFlags are the flags of the verbs that run any tasks of the store.
type workerFlags struct {
	Handlers []string `placeholder:"SET" complete:"app,builtin" help:"Handlers: app (this program), builtin, or both."`
	Queue    []string `placeholder:"NAME[=N]" help:"Queue, at most N tasks at once; repeatable; default: all."`
}

type workerStartCmd struct{}

// Help is shown by worker start --help.
func (workerStartCmd) Help() string { return workerCmd{}.Help() }

// Help is shown by worker --help.
func (workerCmd) Help() string {
	return "--handlers app runs the types of this program, builtin runs commands and requests; the default is app if this program has " +
		"types, else builtin. With --until-idle tasks that are due later stay, and the exit code is 1 if a task ended failed or " +
		"blocked. With --no-private-network http tasks reach only public addresses and those of --allow-address, such as 10.1.2.0/24. " +
		"Metadata services of clouds always need --allow-address. If the store's file is deleted, moved or replaced, the worker waits " +
		"for --store-gone-after and then exits with 3.\n\nWith --delivery redis://HOST:PORT it receives hints of due tasks, and is a publisher, which sends them; while Redis is away it " +
		"finds its tasks in the store.\n\n--health serves /healthz, /readyz and /metrics without credentials, also while " +
		"the worker drains: listen where only probes and Prometheus can connect. `healthcheck` asks it."
}

// Run implements the verb.
func (workerStartCmd) Run(ctx context.Context, s *session, c *workerCmd) error {
	if err := cmp.Or(c.workFlags.check(), c.goneFlag.check()); err != nil {
		return err
	}
	orders, tasks, err := c.roles()
	if err != nil {
		return err
	}
	door, err := c.healthFlag.listen()
	if err != nil {
		return err
	}
	if door != nil {
		defer door.close()
		door.orders = orders
	}
	if !tasks {
		return c.sendOrders(ctx, s, orders, door)
	}
	logs := new(keptLogs)
	handlers, err := c.handlers(s, &c.workFlags, logs)
	if err != nil {
		return err
	}
	queues, err := c.queues(c.slots())
	if err != nil {
		return err
	}
	return s.withWork(ctx, func(st store.Store) error {
		log := s.workLog()
		defer logs.close()
		eng, err := s.newEngine(st, engineParts{handlers: handlers, queues: queues, flags: &c.workFlags, log: log, logs: logs, errs: s.errs, door: door})
		if err != nil {
			return err
		}
		if s.created {
			log.say("there was no store: %s is new, and no task waits in it yet", s.storePlace())
		}
		link := ""
		if l, ok := st.(linked); ok {
			link = " (" + linkOf(l.Direct()) + ")"
		}
		log.say("worker on %s%s, namespace %q, %s: %s", s.store(), link, s.flags.Namespace, text.Plural(c.slots(), "slot"), strings.Join(namesOf(handlers), ", "))
		s.warnOfNamespace(st, log.say)
		if err := orders.open(s, eng.Client, c.DrainTimeout, s.errs); err != nil {
			return err
		}
		orders.greet(false, log.say)
		if err := door.openHealth(s, eng.Client); err != nil {
			return err
		}
		door.greetHealth(log.say)
		err = s.untilGone(ctx, st, c.StoreGoneAfter, warnings(s.errs), func(ctx context.Context) error { return c.work(ctx, eng, orders, door, log) })
		log.say("worker stopped: %s", log.summary())
		left := eng.Troubles()
		for i := range left {
			log.say("this worker cannot run tasks of type %s, and left them: %s", left[i].TaskType, text.OneLine(left[i].Error, explain.MaxMessage))
		}
		if err == nil && c.UntilIdle && (log.unsuccessful() || len(left) > 0) {
			return silent(exitFailed)
		}
		return err
	})
}

func (c *workerCmd) work(ctx context.Context, eng *weaver.Engine, orders *ordersPart, door *door, log *workLog) error {
	g := group.New(context.WithoutCancel(ctx))
	asked, stopListening := listen(ctx, g.Go)
	stopNote := context.AfterFunc(asked.drain, func() {
		door.draining()
		if isStoreGone(asked.drain) {
			return
		}
		log.say("stopping: running tasks may end within %s; interrupt again to stop them now", text.Setting(c.DrainTimeout))
	})
	stopNow := context.AfterFunc(asked.now, func() {
		if !isStoreGone(asked.drain) {
			log.say("stopping now")
		}
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
	parts := group.New(asked.drain)
	parts.Go("engine", work)
	for _, m := range orders.parts() {
		parts.Go(m.name, func(ctx context.Context) error { return m.run(ctx, asked.now) })
	}
	err := door.during(ctx, g.Go, parts.Wait)
	stopLooking()
	stopNote()
	stopNow()
	stopListening()
	return errors.Join(err, g.Wait())
}

// workLog prints the work of a worker: a line for each start and end of an attempt and for each output line of a
// command. With -o json it prints each event as an object.
type workLog struct {
	w     io.Writer
	clock explain.Clock
	json  bool
	bare  bool // without the time

	mu                         sync.Mutex
	encoder                    event.Encoder
	output                     liveOutput
	started, succeeded, failed int
	retrying                   int // failed, with another attempt to come
	allowed                    int // failed, but the job or the repaired task allows it
	blocked, cancelled         int
}

func (s *session) workLog() *workLog {
	return &workLog{w: s.live, clock: s.clock, json: s.json(), output: make(liveOutput)}
}

// say prints a line about the worker itself, except with -o json.
func (l *workLog) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		return
	}
	l.line(time.Now(), fmt.Sprintf(format, args...))
}

// serving prints the address of a server for programs: only with -o json.
func (l *workLog) serving(url string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		_, _ = fmt.Fprintf(l.w, "{\"serving\":%q}\n", url) // error ignored, as in line
	}
}

// line prints a line. It ignores the write error: a reader that went away must not stop tasks.
func (l *workLog) line(at time.Time, said string) {
	when := ""
	if !l.bare {
		when = at.In(l.clock.Zone).Format(time.DateTime) + " "
	}
	_, _ = io.WriteString(l.w, when+text.Printable(said)+"\n")
}

// Emit implements event.Sink.
func (l *workLog) Emit(ev event.Event) {
	if l.json {
		ev = event.Plain(ev)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.count(ev)
	if l.json {
		for _, line := range l.encoder.Lines(ev) {
			_, _ = fmt.Fprintln(l.w, text.PlainJSON(line)) // error ignored, as in line
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

// count updates the counters and returns the text for an event; "" if the event needs no line.
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

// summary counts the attempts by outcome.
func (l *workLog) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := fmt.Sprintf("%s run, %d succeeded, %d failed", text.Plural(l.started, "attempt"), l.succeeded, l.failed)
	if l.retrying > 0 {
		said += fmt.Sprintf(", %d failed and to be retried", l.retrying)
	}
	if l.allowed > 0 {
		said += fmt.Sprintf(", %d failed, which is allowed", l.allowed)
	}
	if l.cancelled > 0 {
		said += fmt.Sprintf(", %d cancelled", l.cancelled)
	}
	if l.blocked > 0 {
		said += fmt.Sprintf(", %d blocked", l.blocked)
	}
	return said
}

// unsuccessful reports whether a task failed, unless its job allows that, or waits for a person.
func (l *workLog) unsuccessful() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed+l.blocked > 0
}
