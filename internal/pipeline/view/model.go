package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// model is the known state of a job. It combines events (fast, of this process
// only) with snapshots of the store (late, of all processes). It does no I/O,
// knows no clock, and is not safe for concurrent use.
type model struct {
	id        task.ID
	job       string // name as given
	name      string // printable name
	namespace string
	state     task.JobState
	stuck     string    // reason for a standstill, as last shown
	info      *task.Job // at the time of newModel
	nodes     []*node   // in order of creation; only grows
	byID      map[task.ID]*node
	byName    map[string]*node // by the name in needs
	shape     *forest          // nil: to be computed
	sleeps    sleeps
	unblock   func(node string) string // see Config.Unblock
}

// node is one task of the model.
type node struct {
	id       task.ID
	of       *task.Job // its job
	key      string    // name in needs and events
	name     string    // printable
	parent   task.ID   // the calling task
	needs    []*node
	state    task.State
	waiting  task.Waiting
	dueAt    time.Time // pending: time of the next attempt
	deadline time.Time
	open     int    // open needs, by the store
	lock     string // concurrency key

	attempt int   // AttemptNo
	epoch   int64 // of the last snapshot
	counted int   // attempts that count toward max
	max     int
	asked   bool          // an end was requested
	mayFail bool          // allow_failure
	takes   task.EdgeKind // condition on its needs; "": success

	begun time.Time     // of the current or last attempt
	ended time.Time     // of the last attempt
	took  time.Duration // of the last attempt

	lapsed time.Time // begin of the previous attempt, if it ran here and no event ended it

	err          *task.Error
	cancelBy     string
	cancelReason string

	said     string // last line of any source
	progress task.Progress
	streams  map[string]*text.Assembler // of the current attempt
	output   bool                       // the current attempt wrote a line
	here     bool                       // events report the current attempt
	mention  time.Time                  // last progress line in Lines
}

// change is an event, a note or a line to show.
type change struct {
	node  *node // nil: the job
	event event.Event
	line  string // of output; the event of a chunk precedes its lines
	note  string // a change without an event, as the end of a sentence about the task or job
}

func newModel(st JobTasks, needs map[string][]string, conditions map[string]task.EdgeKind) *model {
	m := &model{
		id: st.ID, job: st.Name, name: text.OneLine(st.Name, maxName), state: st.State, info: &st.JobInfo,
		byID: make(map[task.ID]*node, len(st.Tasks)), byName: make(map[string]*node, len(st.Tasks)),
	}
	for i := range st.Tasks {
		m.add(st.Tasks[i].ID, st.Tasks[i].Node).adopt(&st.Tasks[i])
	}
	for _, n := range m.nodes {
		n.takes = conditions[n.key]
		for _, name := range needs[n.key] {
			if other := m.byName[name]; other != nil && other != n {
				n.needs = append(n.needs, other)
			}
		}
	}
	return m
}

// maxName is the maximum width of a shown name, in columns.
const maxName = 120

func (m *model) add(id task.ID, name string) *node {
	key := cmp.Or(name, id.String())
	n := &node{id: id, of: m.info, key: key, name: text.OneLine(key, maxName), state: task.Pending}
	m.nodes = append(m.nodes, n)
	m.byID[id] = n
	if name != "" {
		m.byName[name] = n
	}
	m.shape = nil
	return n
}

// observe applies an event and returns the changes to show. It returns nothing for
// events of other jobs and for changes that a snapshot showed.
func (m *model) observe(ev event.Event) []change {
	h := ev.Head()
	if h.JobID != m.id || h.TaskID.IsZero() {
		return nil
	}
	m.namespace = cmp.Or(h.Namespace, m.namespace)
	n := m.byID[h.TaskID]
	if n == nil { // a task added while the job ran
		n = m.add(h.TaskID, h.Node)
	}
	var lapsed time.Time // begin of an attempt of this process that no event ended
	if n.here && n.ended.IsZero() {
		lapsed = n.begun
	}
	n.here = n.here || h.AttemptNo >= n.attempt
	switch ev := ev.(type) {
	case event.TaskStarted:
		if !n.goesTo(h.AttemptNo, task.Running) {
			return nil
		}
		n.start(h.AttemptNo, h.At)
		n.lapsed = lapsed
		return []change{{node: n, event: ev}}
	case event.StreamChunk:
		return n.chunk(ev)
	case event.Progress:
		n.report(ev.Progress)
		return []change{{node: n, event: ev}}
	case event.LogWritten:
		n.show(text.OneLine(ev.Message, text.MaxLine))
		return []change{{node: n, event: ev}}
	case event.StepStarted:
		n.show("step " + text.OneLine(ev.Step, maxName))
		return []change{{node: n, event: ev}}
	}
	end, ok := endOf(ev)
	if !ok {
		return []change{{node: n, event: ev}} // an event of a step: no state changes
	}
	if !n.goesTo(h.AttemptNo, end.state) {
		return nil
	}
	shown := n.finish(h.AttemptNo, h.At, end)
	return append(shown, change{node: n, event: ev})
}

// attemptEnd is the outcome of an attempt.
type attemptEnd struct {
	state   task.State
	waiting task.Waiting
	err     *task.Error
	took    time.Duration
	dueAt   time.Time
	counts  bool
}

// endOf returns the outcome of an attempt from its event, and false for events
// without one: a snapshot shows the task's new state.
func endOf(ev event.Event) (attemptEnd, bool) {
	end, ended := event.EndingOf(ev)
	released := end.Outcome == task.OutcomeReleased
	if !ended || end.Outcome == task.OutcomeLeaseLost || released && end.Error == nil {
		return attemptEnd{}, false
	}
	a := attemptEnd{state: end.State, waiting: end.Waiting, err: end.Error, took: end.Duration, dueAt: end.WakeAt}
	a.counts = task.Counts(end.Outcome, end.Kind())
	switch {
	case released:
		a.state, a.waiting = task.Pending, task.WaitRetry
	case end.Decision == task.DecideRetry:
		a.waiting, a.dueAt = task.WaitRetry, ev.Head().At.Add(end.Delay)
	}
	return a, true
}

// goesTo reports whether an event is new. A task passes through attempt 1 running,
// attempt 1 over, attempt 2 running, …. A snapshot showed the changes before the
// current position.
func (n *node) goesTo(attempt int, s task.State) bool {
	return attempt > n.attempt || attempt == n.attempt && n.state == task.Running && s != task.Running
}

func (n *node) start(attempt int, at time.Time) {
	n.attempt, n.state, n.waiting, n.dueAt = attempt, task.Running, task.WaitNone, time.Time{}
	n.begun, n.ended, n.took = at, time.Time{}, 0
	n.asked, n.output, n.streams = false, false, nil
	n.said, n.progress, n.mention = "", task.Progress{}, at
}

// finish ends an attempt after showing its unfinished lines.
func (n *node) finish(attempt int, at time.Time, end attemptEnd) []change {
	shown := n.flush()
	if attempt > n.attempt { // no event reported its start
		n.begun = at.Add(-end.took)
	}
	n.attempt, n.state, n.waiting, n.dueAt = attempt, end.state, end.waiting, end.dueAt
	n.ended, n.took, n.asked = at, end.took, false
	n.err = end.err
	if end.counts {
		n.counted++
	}
	if end.err != nil {
		n.say(explain.Head(end.err.Message))
	}
	return shown
}

// say stores the last line of a task.
func (n *node) say(line string) {
	if strings.TrimSpace(line) != "" {
		n.said = line
	}
}

// show is say for lines of a running attempt: a late line does not replace the
// outcome.
func (n *node) show(line string) {
	if n.state == task.Running {
		n.say(line)
	}
}

func (n *node) report(p task.Progress) {
	n.progress = p
	n.show(explain.Progress(&p, text.MaxLine))
}

// chunk applies a chunk of live output.
func (n *node) chunk(ev event.StreamChunk) []change {
	shown := []change{{node: n, event: ev}}
	block, ok := ev.Data.(string)
	if !ok || ev.Stream != "stdout" && ev.Stream != "stderr" {
		return shown
	}
	if n.streams == nil {
		n.streams = make(map[string]*text.Assembler, 2)
	}
	a := n.streams[ev.Stream]
	if a == nil {
		a = new(text.Assembler)
		n.streams[ev.Stream] = a
	}
	a.Write(block, func(line string) {
		n.show(line)
		shown = append(shown, n.line(line))
	})
	n.show(a.Seen())
	return shown
}

func (n *node) line(said string) change {
	n.output = true
	return change{node: n, line: said}
}

// flush ends the streams of an attempt.
func (n *node) flush() (shown []change) {
	for _, name := range []string{"stdout", "stderr"} {
		if a := n.streams[name]; a != nil {
			if last := a.Rest(); last != "" {
				n.say(last)
				shown = append(shown, n.line(last))
			}
		}
	}
	n.streams = nil
	return shown
}

// try returns the number of the current or last attempt among those that count.
func (n *node) try() int {
	if n.state == task.Running {
		return n.counted + 1
	}
	return n.counted
}
