// Package view shows a job while it runs: as a tree that is redrawn on a
// terminal, as plain lines in a pipe, or as a stream of JSON objects.
//
// It learns of the job in two ways. Events are quick but come from the
// engines of this process only; snapshots of the store (Reconcile) also show
// what other processes do. Both meet in a model, which puts each change in
// its place: nothing is shown twice, and a snapshot that is older than an event
// does not undo it. The sentences come from package explain.
//
// What tasks print is shown, never obeyed: escape sequences and control
// characters of commands do not reach the terminal.
//
// It decides nothing, reads no store, and starts no goroutine: Run draws.
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

// Format is how a job is shown.
type Format int

// The formats.
const (
	Tree  Format = iota // the tasks as a tree, redrawn in place; for terminals
	Lines               // a line with a time per change and line of output
	JSON                // an object per event and line; see task/event
)

// Config configures a Monitor.
type Config struct {
	Out       io.Writer      // default os.Stdout
	Format    Format         // default Tree
	Color     bool           // paint states
	Quiet     bool           // with Lines: only what went wrong or waits for a person, and of a job that succeeded nothing
	Zone      *time.Location // of the times in Lines; default time.Local
	Store     string         // where the job is kept, for JSON
	Params    string         // of the job's pipeline, a JSON object, for JSON
	Namespace string         // of events that the monitor makes itself; default that of the events

	// Logs returns the command line that shows all that a task wrote, "" when
	// there is none. Default: none.
	Logs func(*task.Task) string

	// Unblock returns the command line that approves a task that waits for a
	// person, by its name. Default: none.
	Unblock func(node string) string

	// Conditions says how tasks take the ends of their needs, by name; those that
	// it lacks as success.
	Conditions map[string]task.EdgeKind

	// New says that the job was submitted just now, so that all that ran of it is
	// news: tasks that another process started before New saw the job are shown by
	// the first Reconcile.
	New bool

	// Size returns the columns and rows of the terminal; it is asked before
	// every drawing. Default: those of Out when it is a terminal, else 80 and
	// 24. A size of 0 counts as 80 or 24.
	Size func() (width, height int)
}

// Monitor shows one job. Its methods are safe for concurrent use. The order
// of things is New, Run while the job runs, Summary.
type Monitor struct {
	cfg     Config
	job     task.ID
	begun   time.Time
	resumed bool
	needs   map[string][]string
	paint   text.Painter
	screen  screen
	wake    chan struct{} // something to write; capacity 1
	closed  atomic.Bool   // Emit does nothing any more

	mu      sync.Mutex
	room    sync.Cond // of mu: pending became shorter, or Run ends
	phase   phase
	model   *model
	terse   terse
	encoder event.Encoder
	pending []byte   // Lines and JSON: not written yet
	above   []string // Tree: lines to go above it
	lost    int      // of above: there were too many
	err     error    // of a write after Run
}

type phase uint8

const (
	waiting phase = iota // for Run
	drawing
	closing // Emit does nothing, Run writes what is pending
	ended   // what is said is written at once
	summed  // the JSON stream is complete
)

// maxPending is how many bytes wait for a slow reader of Lines and JSON
// before Emit does, and maxAbove how many lines for a slow terminal.
const (
	maxPending = 1 << 20
	maxAbove   = 1000
)

// redrawEvery is how often the tree is drawn at most.
const redrawEvery = 100 * time.Millisecond

// New returns a monitor of the job st, as the store has it now. needs gives
// the names of the tasks that a task needs, by its name.
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

// Emit implements event.Sink. Events of other jobs are ignored, and so is
// everything once Run has ended. With Tree it never waits for Out. With Lines
// and JSON nothing is dropped: it waits while a MiB of text is unwritten, also
// for Run to begin.
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

// Reconcile compares what is known with the job as the store has it. Changes
// that no event told are shown now, as events: what other processes did, and
// what became of tasks whose needs did not succeed.
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

// Note shows a message, above the tree or as a line. It never
// waits for Out while Run runs. JSON does not have it, nor has Quiet.
func (m *Monitor) Note(format string, args ...any) {
	if m.cfg.Format == JSON || m.cfg.Quiet {
		return
	}
	for _, line := range text.Lines(fmt.Sprintf(format, args...)) {
		m.say(line, "")
	}
}

// Run draws until ctx ends, and then the last state once. Every change that was
// emitted or reconciled before is on Out when it returns. An Out that blocks
// blocks it, one that fails ends it with the error. It is called once.
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
		// Asked before the step: what comes during it, before ctx ends, needs
		// another one.
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

// pause waits for something to do.
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

// finish closes Emit, so that writing what is pending comes to an end.
func (m *Monitor) finish() {
	m.closed.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase = closing
	m.room.Broadcast()
}

// write writes what is pending and reports whether that is not all. When it
// is all and Run ends, what is said from then on is written at once.
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

// size is the terminal's, with at least the columns that the tree needs.
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

// TerminalSize returns how many columns and rows the terminal has that w writes
// to; 0, 0 if w is none, or it does not say.
func TerminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}
