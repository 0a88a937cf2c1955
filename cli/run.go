package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

type runCmd struct {
	File   string `arg:"" optional:"" name:"file" help:"Pipeline file (YAML), or - for the standard input."`
	Schema bool   `help:"Print the JSON Schema of pipeline files."`
	DryRun bool   `help:"Print the tasks that would run, in order."`
	Quiet  bool   `short:"q" help:"Print only failures, and tasks that wait for a person."`
	Keep   bool   `help:"Keep jobs of the file that ended more than 30 days ago."`
	paramFlags
	pipelineFlags
	workFlags
}

// workFlags are the flags of the verbs that run tasks.
type workFlags struct {
	Slots        *int          `placeholder:"N" help:"Number of concurrent tasks; default: CPUs, at least 4."`
	DrainTimeout time.Duration `default:"30s" placeholder:"DURATION" help:"Grace period after the first interrupt; default 30s."`
	addressFlags

	noMetadata bool // other users may have submitted the tasks
}

// addressFlags are the flags of the verbs that call other servers.
type addressFlags struct {
	NoPrivateNetwork bool     `help:"Public addresses only, for http tasks and orders."`
	AllowAddress     []string `placeholder:"ADDRESS" help:"Additional address or network for http tasks and orders; repeatable."`

	allowed []netip.Prefix // AllowAddress
}

func (f *addressFlags) checkAddresses() error {
	for _, text := range f.AllowAddress {
		network, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			addr = addr.WithZone("").Unmap()
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return badInput("Write an address, as 169.254.169.254, or a network, as 10.1.2.0/24.", "--allow-address %q: neither an address nor a network", text)
		}
		f.allowed = append(f.allowed, network)
	}
	return nil
}

func (f *workFlags) check() error {
	if err := f.checkAddresses(); err != nil {
		return err
	}
	if f.Slots != nil && *f.Slots < 1 {
		return badInput("", "--slots %d: want at least 1", *f.Slots)
	}
	if f.DrainTimeout <= 0 {
		return badInput("Another interrupt, half a second after the first one or later, stops at once.", "--drain-timeout %s: want a positive duration", f.DrainTimeout)
	}
	return nil
}

func (f *workFlags) slots() int {
	if f.Slots == nil {
		return max(runtime.NumCPU(), 4)
	}
	return *f.Slots
}

func (f *workFlags) builtins(logs *keptLogs) []weaver.Handler {
	return builtin.Handlers(builtin.Config{NoPrivateNetwork: f.NoPrivateNetwork, NoMetadata: f.noMetadata, AllowNetworks: f.allowed, Logs: logs.writer})
}

// Help is shown by run --help.
func (runCmd) Help() string {
	return "Runs the pipeline of a file as a job, once, also if it has a schedule: submit stores that. An unfinished job of the file with the same params is resumed. If the file changed " +
		"since, choose --resume, --fresh or --update. --update keeps the results of earlier jobs that the file still describes, " +
		"cancels an unfinished job, and runs the rest. --from does the same and runs a task again, with all that need it; --only runs " +
		"a task again alone, and its needs must have succeeded before. Included files must be below the folder of the pipeline or a " +
		"folder of --include-dir.\n\nWith --no-private-network http tasks reach only public addresses and those of --allow-address, " +
		"such as 10.1.2.0/24. Jobs of the file that ended more than 30 days ago are removed, except the latest one; --keep keeps them."
}

// Run implements the verb.
func (c *runCmd) Run(ctx context.Context, s *session) error {
	switch {
	case c.Schema && c.File != "":
		return badInput("", "--schema prints the schema and runs nothing: leave %s out", c.File)
	case c.Schema:
		s.printf("%s\n", pipeline.Schema())
		return nil
	case c.Quiet && s.json():
		return badInput("", "--quiet is for text: -o json has every event")
	case c.File == "":
		return badInput("", "run needs a file: %s run FILE.yaml", s.app.Name)
	}
	if err := c.check(); err != nil {
		return err
	}
	params, err := c.values()
	if err != nil {
		return err
	}
	logs := new(keptLogs)
	handlers := appOver(c.builtins(logs), s.app.Handlers)
	file, err := s.readPipeline(c.File, fileInputs{runnable(handlers), params, c.Update && len(params) == 0, c.IncludeDir})
	if err != nil {
		return err
	}
	s.useStoreOf(file)
	s.warn(file)
	if c.DryRun {
		return s.dryRun(ctx, file, c.pipelineFlags)
	}
	if err := s.streamWarnings(file); err != nil {
		return err
	}
	return s.withWork(ctx, func(st store.Store) error {
		r := &pipelineRun{session: s, flags: c, file: file, logs: logs}
		return s.untilGone(ctx, st, runGoneAfter, nil, func(ctx context.Context) error { return r.run(ctx, st, handlers) })
	})
}

// appOver merges two lists of handlers; for a type in both it takes the program's own.
func appOver(builtins, app []weaver.Handler) []weaver.Handler {
	named := make(map[string]bool, len(app))
	for _, h := range app {
		named[h.Name()] = true
	}
	all := append([]weaver.Handler(nil), app...)
	for _, h := range builtins {
		if !named[h.Name()] {
			all = append(all, h)
		}
	}
	return all
}

// pipelineRun is one `run FILE`: an engine for the queues of the file's job, and a monitor of the job.
type pipelineRun struct {
	*session
	flags *runCmd
	file  *pipelineFile
	logs  *keptLogs

	client  *weaver.Client
	job     start
	reading time.Duration // duration of the last read of the job
	monitor *view.Monitor
}

func (r *pipelineRun) run(ctx context.Context, st store.Store, handlers []weaver.Handler) error {
	bucket, err := r.bucket(true)
	if err != nil {
		return err
	}
	if r.client, err = r.newClient(st, true); err != nil {
		return err
	}
	if r.job, err = r.begin(ctx, r.client, r.file, "run", r.flags.pipelineFlags); err != nil {
		return err
	}
	if r.job.id == (weaver.JobID{}) {
		return r.nothing(r.file, r.job)
	}
	began := time.Now()
	status, err := readJob(ctx, r.client, r.job.id)
	if err != nil {
		return err
	}
	r.reading = time.Since(began)
	if expired, err := expireApprovals(ctx, r.client, status.Tasks, time.Now()); err != nil {
		return err
	} else if expired > 0 {
		if status, err = readJob(ctx, r.client, r.job.id); err != nil {
			return err
		}
	}
	needs, conditions, err := r.needs(ctx, status)
	if err != nil {
		return err
	}
	cfg := r.monitorConfig()
	cfg.Conditions, cfg.Params, cfg.New = conditions, status.Meta[metaParams], !r.job.resumed
	r.monitor = view.New(cfg, status, needs)
	codec, err := r.codec()
	if err != nil {
		return err
	}
	transport, err := r.delivery()
	if err != nil {
		return err
	}
	r.logs.open(r.session, r.sealedLogs(codec), r.monitor.Logger())
	defer r.logs.close()
	eng, err := weaver.New(st, weaver.Config{
		Namespace:    r.client.Namespace(),
		Handlers:     handlers,
		Concurrency:  r.flags.slots(),
		Queues:       r.queues(status),
		DrainTimeout: r.flags.DrainTimeout,
		CrashBudget:  -1, // a user starts each run, and a command cannot crash this process
		Logger:       slog.New(engineLog{r.monitor.Logger().Handler(), true}),
		Sink:         r.monitor,
		Bucket:       bucket,
		Decider:      r.session.app.Decider,
		Router:       r.session.app.Router,
		Plugins:      r.session.app.Plugins,
		Codec:        codec,
		Delivery:     transport,
		NoPublisher:  true, // workers and servers publish
	})
	if err != nil {
		return err
	}
	r.greet(status)
	r.monitor.Reconcile(status)
	if !r.flags.Keep {
		// The next run removes jobs that cannot be removed now.
		if n, err := r.removeOld(ctx); err != nil {
			r.monitor.Note("old jobs of %s were not removed: %v", r.file.label(), err)
		} else if n > 0 {
			r.monitor.Note("removed %s of %s that ended more than 30 days ago (--keep keeps them)", text.Plural(n, "job"), r.file.label())
		}
	}
	// The summary shows the state in the store, even after an interrupt.
	status, workErr, err := r.work(ctx, eng)
	if err != nil {
		return errors.Join(workErr, err)
	}
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	past, err := r.past(final, status)
	if err != nil {
		return errors.Join(workErr, err)
	}
	if err := r.monitor.Summary(status, past); err != nil {
		return errors.Join(workErr, fmt.Errorf("write the result: %w", err))
	}
	return r.verdict(status, workErr)
}

// past reads the earlier attempts of tasks with several attempts.
func (r *pipelineRun) past(ctx context.Context, st jobTasks) (map[weaver.TaskID]view.Past, error) {
	past := make(map[weaver.TaskID]view.Past)
	for i := range st.Tasks {
		t := &st.Tasks[i]
		if t.AttemptNo < 2 {
			continue
		}
		h, err := masked(r.client).History(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		past[t.ID] = view.PastOf(h.Attempts)
	}
	return past, nil
}

func (r *pipelineRun) monitorConfig() view.Config {
	cfg := view.Config{
		Out: r.live, Store: r.storePlace(), Namespace: r.client.Namespace(),
		Format: view.Lines, Color: r.paint.On, Zone: r.clock.Zone, Logs: r.logsOf, Unblock: r.unblocks,
	}
	switch {
	case r.json():
		cfg.Format = view.JSON
	case r.flags.Quiet:
		cfg.Quiet = true
	case r.terminal:
		cfg.Format = view.Tree
	}
	return cfg
}

// logsOf returns the command line that shows the whole output of a task.
func (r *pipelineRun) logsOf(t *weaver.TaskInfo) string {
	if !r.logs.has(t) {
		return ""
	}
	return r.command("logs", t.JobID.String()+"/"+t.Node)
}

// needs returns the job's graph and the edge kinds of its tasks. They come from the file, or from the store if the
// file or the files that its patterns match have changed.
func (r *pipelineRun) needs(ctx context.Context, st jobTasks) (map[string][]string, map[string]task.EdgeKind, error) {
	if r.job.same && r.job.nodes {
		return r.file.DrawnNeeds(), r.file.Conditions(), nil
	}
	needs, conditions := make(map[string][]string, len(st.Tasks)), make(map[string]task.EdgeKind)
	for _, t := range st.Tasks {
		h, err := masked(r.client).History(ctx, t.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range h.Needs {
			needs[t.Node] = append(needs[t.Node], n.Node)
			conditions[t.Node] = n.Kind
		}
	}
	return needs, conditions, nil
}

// queues returns the queues of the job's tasks: the job's own queue, and the queues of task types with a fixed queue.
func (r *pipelineRun) queues(st jobTasks) map[string]int {
	queues := make(map[string]int)
	for i := range st.Tasks {
		queues[st.Tasks[i].Queue] = r.flags.slots()
	}
	return queues
}

// greet prints the job that runs.
func (r *pipelineRun) greet(st jobTasks) {
	c, title := st.Counters, title(st.Name, st.Meta[metaParams])
	if r.created {
		r.monitor.Note("%s: the store is new", r.storePlace())
	} else {
		r.monitor.Note("%s", r.storePlace())
	}
	switch {
	case r.job.resumed:
		r.monitor.Note("%s: job %s goes on, %d of its %d tasks have ended", title, st.ID, c.Total-c.Unfinished, c.Total)
		if r.job.undoes {
			r.monitor.Note("it was cancelled, and what it did is undone first: the next run of %s begins a new job", r.file.label())
		}
		if !r.job.same {
			r.monitor.Note("%s changed since: the job is run as it was submitted", r.file.label())
		}
		for _, t := range questions(&st) {
			r.monitor.Note("%s: %s (%s)", t.Node, explain.WaitsForPerson(explain.Question(t.Type, t.Error)), r.unblocks(t.Node))
		}
		if n := r.job.others; n > 0 {
			r.monitor.Note("left unfinished: %s of %s (`%s`)", text.Plural(n, "older job"), r.file.given, r.command("job", "ls", "--name", st.Name))
		}
	case r.job.update != nil:
		for _, line := range r.job.update.notes(title, st.ID) {
			r.monitor.Note("%s", line)
		}
	case r.job.ended != nil:
		old := r.job.ended
		r.monitor.Note("%s: job %s, %s; the unfinished job %s was cancelled (submitted %s, %d of its %d tasks had ended)", title, st.ID, text.Plural(c.Total, "task"),
			old.ID, r.clock.Rel(old.CreatedAt), old.Counters.Total-old.Counters.Unfinished, old.Counters.Total)
	default:
		r.monitor.Note("%s: job %s, %s", title, st.ID, text.Plural(c.Total, "task"))
	}
	r.noteSchedule()
}

// work runs the engine and draws the monitor until the job ends, cannot continue, or is interrupted. It returns the
// job as stored at that time, or the read error.
func (r *pipelineRun) work(ctx context.Context, eng *weaver.Engine) (st jobTasks, workErr, readErr error) {
	g := group.New(context.WithoutCancel(ctx))
	asked, stopListening := listen(ctx, g.Go)
	engineCtx, stopEngine := context.WithCancel(asked.drain)
	defer stopEngine()
	drawCtx, stopDrawing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopDrawing()

	g.Go("draw", func(context.Context) error { return r.monitor.Run(drawCtx) })
	g.Go("watch", func(context.Context) error { return r.watch(drawCtx, eng, stopEngine) })
	g.Go("tick", func(context.Context) error { return r.tick(drawCtx) })
	g.Go("wait", func(context.Context) error {
		defer stopEngine()
		_, err := eng.WaitJob(engineCtx, r.job.id)
		if engineCtx.Err() != nil || errors.Is(err, weaver.ErrBlocked) {
			return nil // verdict reports the outcome
		}
		return err
	})
	stopNote := context.AfterFunc(asked.drain, func() {
		if isStoreGone(asked.drain) {
			return
		}
		r.monitor.Note("Stopping: running tasks may end within %s; interrupt again to stop them now.", text.Setting(r.flags.DrainTimeout))
	})
	stopNow := context.AfterFunc(asked.now, func() {
		if !isStoreGone(asked.drain) {
			r.monitor.Note("Stopping now.")
		}
		eng.StopNow()
	})
	err := eng.Run(engineCtx)
	stopNote()
	stopNow()
	stopEngine()
	stopListening()
	st, readErr = r.look(context.WithoutCancel(ctx)) // the last frame shows the state in the store
	stopDrawing()
	return st, errors.Join(err, g.Wait()), readErr
}

// look reads the job, shows it in the monitor, and returns it.
func (r *pipelineRun) look(ctx context.Context) (jobTasks, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	st, err := readJob(ctx, r.client, r.job.id)
	if err == nil {
		r.monitor.Reconcile(st)
	}
	return st, err
}

// The store is polled every second for the work of other processes. A large job is polled less often: reading takes
// at most a fiftieth of the time.
const (
	watchEvery = time.Second
	watchShare = 50
)

// watch notifies the monitor of changes by other processes, and of tasks whose state follows from an ended need. It
// stops the engine if that cannot run the job.
func (r *pipelineRun) watch(ctx context.Context, eng *weaver.Engine, stop context.CancelFunc) (cannot error) {
	pause := max(watchEvery, watchShare*r.reading)
	for times := 0; ; {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return cannot
		case <-timer.C:
		}
		began := time.Now()
		if st, err := r.look(ctx); err == nil { // on an error the engine met it too, and logged it
			_, _ = expireApprovals(ctx, r.client, st.Tasks, time.Now())
			if cannot = cannotRun(eng, &st); cannot == nil {
				times = 0
			} else if times++; times > 1 { // not just between two tasks
				stop()
			}
		}
		pause = max(watchEvery, watchShare*time.Since(began))
	}
}

// cannotRun returns an error if no task of the job is running and this program lacks the bucket, codec or key for one
// of its task types.
func cannotRun(eng *weaver.Engine, st *jobTasks) error {
	if slices.ContainsFunc(st.Tasks, func(t task.Task) bool { return t.State == task.Running }) {
		return nil
	}
	for _, tr := range eng.Troubles() {
		if tr.Lasting {
			return badInput("Started with it (--bucket, --codec-key), the same run goes on.", "this program cannot run tasks of type %s: %s", tr.TaskType, tr.Error)
		}
	}
	return nil
}

// tick tells the monitor every second that this process is alive.
func (r *pipelineRun) tick(ctx context.Context) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		r.monitor.Tick(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}
