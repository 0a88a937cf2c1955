package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undoFound is the JSON form of a task whose undo failed or does not end.
type undoFound struct {
	ID    task.ID   `json:"id"`
	Type  string    `json:"task_type"`
	Queue string    `json:"queue"`
	What  undoWhat  `json:"what"`
	Since time.Time `json:"since"` // start of the undo phase
	Error string    `json:"error,omitempty"`
}

// undoWhat is the problem of an undo.
type undoWhat string

const (
	undoGivenUp undoWhat = "given_up"
	undoBlocked undoWhat = "blocked" // it needs a person
	undoPaused  undoWhat = "paused"  // its queue, its type or the task itself is paused
	undoLong    undoWhat = "long"    // it has taken an hour
)

// longUndo is the duration after which doctor warns of an undo.
const longUndo = time.Hour

// Maximum number of undos in a warning, and in the JSON output.
const (
	maxUndos     = 10
	maxUndosJSON = 1000
)

// noteUndos keeps the tasks of a snapshot that are being undone or whose undo failed.
func (f *checkup) noteUndos(s *store.Snapshot) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Undo == nil || t.Undo.Abandoned || t.Waiting == task.WaitDeps { // an undo that waits for its job
			continue
		}
		kept := task.Task{ID: t.ID, Type: t.Type, Queue: t.Queue, State: t.State, Undo: t.Undo, Error: t.Error}
		if slices.ContainsFunc(s.PausedTasks, func(p store.PausedTask) bool { return p.Task == t.ID }) {
			kept.Pause = task.PauseTask
		}
		f.undos = append(f.undos, kept)
	}
}

// examineUndos warns of undos that failed or do not end.
func (f *checkup) examineUndos(s *session, lanes []store.Queue, warn func(key, format string, args ...any)) {
	paused := make(map[string]bool) // by queue name, and by NUL + type name
	for i := range lanes {
		if l := &lanes[i]; l.Pause != nil && l.Type != "" {
			paused["\x00"+l.Type] = true
		} else if l.Pause != nil {
			paused[l.Name] = true
		}
	}
	of := make(map[undoWhat][]task.ID)
	for i := range f.undos {
		t := &f.undos[i]
		what := undoTrouble(t, paused[t.Queue] || paused["\x00"+t.Type], f.At)
		if what == "" {
			continue
		}
		of[what] = append(of[what], t.ID)
		if len(f.Undos) < maxUndosJSON {
			found := undoFound{ID: t.ID, Type: t.Type, Queue: t.Queue, What: what, Since: t.Undo.Began}
			if t.Error != nil {
				found.Error = t.Error.Message
			}
			f.Undos = append(f.Undos, found)
		}
	}
	for _, w := range []struct {
		what       undoWhat
		key, said  string
		then, verb string
	}{
		{undoGivenUp, "undo given up", "was given up, and what was not undone stays", "tries it again", s.command("task", "retry", "ID", "--cleanup")},
		{undoBlocked, "undo blocked", "needs a person", "tells why", s.command("why", "ID")},
		{undoPaused, "undo paused", "is held up by a pause", "tells whose", s.command("why", "ID")},
		{undoLong, "long undo", "has taken more than an hour", "tells why", s.command("why", "ID")},
	} {
		ids := of[w.what]
		if len(ids) == 0 {
			continue
		}
		warn(w.key, "the undo of %s %s (%s): `%s` %s", text.Plural(len(ids), "task"), w.said, listed(ids), w.verb, w.then)
	}
}

// undoTrouble returns the problem of a task's undo, or "". paused tells whether its queue or type is paused.
func undoTrouble(t *task.Task, paused bool, now time.Time) undoWhat {
	switch p := t.Undo; {
	case p.GaveUp:
		return undoGivenUp
	case t.State == task.Blocked:
		return undoBlocked
	case t.State == task.Pending && (paused || t.Pause != task.PauseNone):
		return undoPaused
	case now.Sub(p.Began) > longUndo:
		return undoLong
	}
	return ""
}

// listed names the first tasks of a list.
func listed(ids []task.ID) (said string) {
	for i, id := range ids {
		switch {
		case i == maxUndos:
			return said + fmt.Sprintf(" and %d more", len(ids)-i)
		case i > 0:
			said += ", "
		}
		said += id.String()
	}
	return said
}
