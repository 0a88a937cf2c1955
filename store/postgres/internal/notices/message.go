package notices

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Channel returns the name of the channel of a namespace in a schema.
func Channel(schema, ns string) string {
	sum := sha256.Sum256([]byte(schema + "\x00" + ns))
	return "weaver_" + hex.EncodeToString(sum[:16])
}

// lockOf returns the advisory lock of a namespace. Processes whose callers wait for its tasks
// or jobs hold it, shared.
func lockOf(schema, ns string) int64 {
	sum := sha256.Sum256([]byte("weaver awaits\x00" + schema + "\x00" + ns))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// news is the content of the next notification.
type news struct {
	due     bool
	cancels ids
	tasks   ids
	jobs    ids
	events  ids // tasks with new event rows
}

// ids is a limited list of IDs. more reports that IDs were left out.
type ids struct {
	list []task.ID
	more bool
}

func (l *ids) add(list []task.ID) {
	free := maxIDs - len(l.list)
	l.more = l.more || len(list) > free
	l.list = append(l.list, list[:min(free, len(list))]...)
}

// addNew is add without duplicates.
func (l *ids) addNew(list []task.ID) {
	for _, id := range list {
		if !slices.Contains(l.list, id) {
			l.add([]task.ID{id})
		}
	}
}

func (n *news) empty() bool { return !n.due && len(n.cancels.list) == 0 && !n.named() }

// named reports whether there is news for callers that wait for tasks and jobs.
func (n *news) named() bool { return len(n.tasks.list)+len(n.jobs.list)+len(n.events.list) > 0 }

func (n *news) add(got *store.Notice) {
	n.due = n.due || got.Due
	n.cancels.add(got.Cancels)
	n.tasks.add(got.Tasks)
	n.jobs.add(got.Jobs)
	n.events.addNew(got.Events)
}

// message is the content of a notification. A message that only says that a task is due is
// empty.
type message struct {
	Due     bool      `json:"due,omitempty"`
	Cancels []task.ID `json:"cancels,omitempty"`
	Tasks   []task.ID `json:"tasks,omitempty"`
	Jobs    []task.ID `json:"jobs,omitempty"`
	Events  []task.ID `json:"events,omitempty"`
	More    bool      `json:"more,omitempty"` // there are more than it can name
}

// payloads returns the payload for processes that wait for work only, and the payload for
// processes that also wait for tasks and jobs.
func (n *news) payloads() (short, full string) {
	m := message{Due: n.due, Cancels: n.cancels.list, More: n.cancels.more}
	short = m.String()
	rest := maxIDs - len(m.Cancels)
	m.Tasks = n.tasks.list[:min(rest, len(n.tasks.list))]
	rest -= len(m.Tasks)
	m.Jobs = n.jobs.list[:min(rest, len(n.jobs.list))]
	rest -= len(m.Jobs)
	m.Events = n.events.list[:min(rest, len(n.events.list))]
	m.More = m.More || n.tasks.more || n.jobs.more || n.events.more ||
		len(m.Tasks) < len(n.tasks.list) || len(m.Jobs) < len(n.jobs.list) || len(m.Events) < len(n.events.list)
	return short, m.String()
}

// String returns the payload.
func (m *message) String() string {
	if len(m.Cancels)+len(m.Tasks)+len(m.Jobs)+len(m.Events) == 0 && !m.More {
		return ""
	}
	text, _ := json.Marshal(m) // IDs and booleans: it does not fail
	return string(text)
}

// notice returns the notice in a payload. An unreadable payload comes from another version of
// this program.
func notice(payload string) store.Notice {
	if payload == "" {
		return store.Notice{Due: true}
	}
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		return store.Notice{External: true}
	}
	return store.Notice{Due: m.Due, Cancels: m.Cancels, Tasks: m.Tasks, Jobs: m.Jobs, Events: m.Events, External: m.More}
}
