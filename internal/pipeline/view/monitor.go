// Package view shows a running job: as a tree redrawn in place on a terminal, as
// plain lines in a pipe, or as a stream of JSON objects.
//
// It learns of the job from two sources. Events are fast, but come from the
// engines of this process only. Snapshots of the store (Reconcile) include other
// processes. A model orders the changes of both: each is shown once, and a
// snapshot older than an event does not undo it. Package explain writes the
// sentences.
//
// The output of tasks is shown, never interpreted: escape sequences and control
// characters of commands do not reach the terminal.
//
// It makes no decisions, reads no store, and starts no goroutine: Run draws.
package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Format is a format of the output.
type Format int

// The output formats.
const (
	Tree  Format = iota // a tree redrawn in place; for terminals
	Lines               // a line with a time per change and line of output
	JSON                // an object per event and line; see task/event
)

// Config configures a Monitor.
type Config struct {
	Out       io.Writer      // default os.Stdout
	Format    Format         // default Tree
	Color     bool           // paint states
	Quiet     bool           // with Lines: only failures and questions to a person, and nothing for a job that succeeded
	Zone      *time.Location // of the times in Lines; default time.Local
	Store     string         // location of the job, for JSON
	Params    string         // params of the job's pipeline, a JSON object, for JSON
	Namespace string         // of events that the monitor creates; default: that of received events

	// Logs returns the command line that shows a task's whole output, or "". Optional.
	Logs func(*task.Task) string

	// Unblock returns the command line that approves a waiting task, by name.
	// Optional.
	Unblock func(node string) string

	// Conditions holds the conditions of tasks on their needs, by name; missing means
	// success.
	Conditions map[string]task.EdgeKind

	// New reports that the job was just submitted. Tasks that another process started
	// before the call of [New] are then shown by the first Reconcile.
	New bool

	// Size returns the columns and rows of the terminal; it is called before every
	// drawing. Default: the size of Out if it is a terminal, else 80 and 24. A size of
	// 0 counts as 80 or 24.
	Size func() (width, height int)
}

// Monitor shows one job. Its methods are safe for concurrent use. Call New, then
// Run while the job runs, then Summary.
type Monitor struct {
	cfg     Config
	job     task.ID
	begun   time.Time
	resumed bool
	needs   map[string][]string
	paint   text.Painter
	screen  screen
	wake    chan struct{} // there is something to write; capacity 1
	closed  atomic.Bool   // Emit returns at once

	mu      sync.Mutex
	room    sync.Cond // of mu: pending became shorter, or Run ends
	phase   phase
	model   *model
	terse   terse
	encoder event.Encoder
	pending []byte   // Lines and JSON: unwritten bytes
	above   []string // Tree: lines to print above the tree
	lost    int      // number of lines dropped from above
	err     error    // of a write after Run
}

type phase uint8

const (
	waiting phase = iota // before Run
	drawing
	closing // Emit returns at once, Run writes what is pending
	ended   // Note writes at once
	summed  // the JSON stream is complete
)

// maxPending is the number of unwritten bytes from which Emit waits for a slow
// reader of Lines and JSON. maxAbove is the maximum number of lines that wait for
// a slow terminal.
const (
	maxPending = 1 << 20
	maxAbove   = 1000
)

// redrawEvery is the minimum interval between drawings of the tree.
const redrawEvery = 100 * time.Millisecond

// New returns a monitor of the job st, as the store has it now. needs holds the
// names of each task's needs, by name.
func New(cfg Config, st JobTasks, needs map[string][]string) *Monitor {
	if cfg.Out == nil {
		cfg.Out = os.Stdout
	}
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	if cfg.Logs == nil {
		cfg.Logs = func(*task.Task) string { return "" }
	}
	if cfg.New {
		st = unstarted(st)
	}
	m := &Monitor{
		cfg: cfg, job: st.ID, begun: time.Now(), needs: needs, paint: text.Painter{On: cfg.Color}, screen: screen{out: cfg.Out},
		wake: make(chan struct{}, 1), model: newModel(st, needs, cfg.Conditions),
	}
	m.room.L = &m.mu
	m.model.namespace, m.model.unblock = cfg.Namespace, cfg.Unblock
	m.terse = m.model.newTerse(&m.cfg)
	for i := range st.Tasks {
		m.resumed = m.resumed || st.Tasks[i].AttemptNo > 0 || st.Tasks[i].State.Terminal()
	}
	if cfg.Format == JSON {
		m.object(event.JobStarted{JobHeader: m.model.header(m.begun), Tasks: len(st.Tasks), Resumed: m.resumed, Store: cfg.Store, Params: json.RawMessage(cfg.Params)})
	}
	return m
}

// Emit implements event.Sink. It ignores events of other jobs, and all events
// after Run ends. With Tree it never waits for Out. With Lines and JSON it drops
// nothing: it waits while a MiB is unwritten, even before Run begins.
func (m *Monitor) Emit(ev event.Event) {
	if m.closed.Load() || ev.Head().JobID != m.job {
		return
	}
	ev = event.Plain(ev)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase >= closing {
		return
	}
	m.show(m.model.observe(ev), time.Now())
	for m.phase <= drawing && len(m.pending) > maxPending {
		m.room.Wait()
	}
}

// Reconcile compares the model with the job as the store has it. It shows changes
// without events as events: changes by other processes, and the ends of tasks
// whose needs did not succeed.
func (m *Monitor) Reconcile(st JobTasks) {
	if st.ID != m.job {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.show(m.model.reconcile(st, now), now)
	for m.phase == drawing && len(m.pending) > maxPending {
		m.room.Wait()
	}
}

// Note shows a message above the tree or as a line. It never waits for Out while
// Run runs. JSON and Quiet omit it.
func (m *Monitor) Note(format string, args ...any) {
	if m.cfg.Format == JSON || m.cfg.Quiet {
		return
	}
	for _, line := range text.Lines(fmt.Sprintf(format, args...)) {
		m.say(line, "")
	}
}

// Run draws until ctx ends, and then draws the last state once. It returns after
// every change emitted or reconciled before ctx ended is on Out. A blocked Out
// blocks Run; a failed write ends it with the error. Call it once.
func (m *Monitor) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.phase != waiting {
		m.mu.Unlock()
		return errors.New("the monitor's Run was called before: make a new one for another run")
	}
	m.phase = drawing
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.closed.Store(true)
		m.phase = ended
		m.room.Broadcast()
	}()
	step := m.write
	if m.cfg.Format == Tree {
		step = m.draw
	}
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		// Read before the step: a change during the step, before ctx ends, needs another
		// step.
		ending := ctx.Err() != nil
		if ending {
			m.finish()
		}
		more, err := step()
		switch {
		case err != nil:
			return fmt.Errorf("show the job: %w", err)
		case !ending:
			m.pause(ctx, tick.C)
		case !more:
			return nil
		}
	}
}

// pause waits for work.
func (m *Monitor) pause(ctx context.Context, tick <-chan time.Time) {
	if m.cfg.Format != Tree {
		tick = nil
	}
	select {
	case <-ctx.Done():
	case <-m.wake:
	case <-tick:
	}
}

// finish closes Emit, so that the pending output is finite.
func (m *Monitor) finish() {
	m.closed.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase = closing
	m.room.Broadcast()
}

// write writes the pending output and reports whether more is left. Once Run ends
// and nothing is left, later messages are written at once.
func (m *Monitor) write() (more bool, err error) {
	m.mu.Lock()
	pending := m.pending
	m.pending = nil
	if m.phase == closing && len(pending) == 0 {
		m.phase = ended
	}
	m.room.Broadcast()
	m.mu.Unlock()
	if len(pending) == 0 {
		return false, nil
	}
	_, err = m.cfg.Out.Write(pending)
	return true, err
}

// draw is write for the tree.
func (m *Monitor) draw() (more bool, err error) {
	columns, rows := m.size()
	m.mu.Lock()
	f := m.model.frame(columns, rows, m.begun, time.Now())
	above := m.takeAbove()
	m.mu.Unlock()
	if err := m.screen.draw(above, f.text(m.paint, columns), columns, rows); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phase == closing && len(m.above) == 0 {
		m.phase = ended
	}
	return len(m.above) > 0, nil
}

// size returns the size of the terminal, at least the columns that the tree needs.
func (m *Monitor) size() (columns, rows int) {
	columns, rows = m.askSize()
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return max(columns, 20), rows
}

func (m *Monitor) askSize() (columns, rows int) {
	if m.cfg.Size != nil {
		return m.cfg.Size()
	}
	return TerminalSize(m.cfg.Out)
}

// TerminalSize returns the columns and rows of the terminal that w writes to, or
// 0, 0 if there is no terminal or no known size.
func TerminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}
