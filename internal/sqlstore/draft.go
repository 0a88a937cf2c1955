package sqlstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// draft is a task that is not stored yet: a child, or a task of a job that is stored in parts.
// Its input keeps its text.
type draft struct {
	draftFields
	Input []byte `json:",omitzero"`

	Cleanup bool `json:"CleanupWhenCancelled,omitzero"` // written by older programs

	// Fields of an element of a part of a job. Its needs are in Edges.
	Like   bool      `json:",omitzero"` // all other fields equal those of the task before it
	Needed bool      `json:",omitzero"`
	More   bool      `json:",omitzero"` // it has only further edges of the task ID
	Stored int       `json:",omitzero"` // number of edges inserted with the task; 0: all
	Edges  []edgeRun `json:",omitzero"`
}

// edgeRun is a run of consecutive needs of one kind.
type edgeRun struct {
	Kind task.EdgeKind
	IDs  []byte // concatenated
}

// draftFields is task.New without its input. It is encoded without its zero fields.
type draftFields struct {
	ID            task.ID
	Type          string          `json:",omitzero"`
	Queue         string          `json:",omitzero"`
	Input         json.RawMessage `json:"-"`
	SchemaVersion int             `json:",omitzero"`
	Priority      int             `json:",omitzero"`

	Delay       time.Duration `json:",omitzero"`
	At          time.Time     `json:",omitzero"`
	ExpireAfter time.Duration `json:",omitzero"`

	MaxAttempts   int           `json:",omitzero"`
	MaxRepairs    int           `json:",omitzero"`
	MaxCost       int64         `json:",omitzero"`
	MaxNoProgress int           `json:",omitzero"`
	Backoff       time.Duration `json:",omitzero"`
	BackoffMax    time.Duration `json:",omitzero"`
	Timeout       time.Duration `json:",omitzero"`

	task.Options

	IdempotencyKey   string `json:",omitzero"`
	ConcurrencyKey   string `json:",omitzero"`
	ConcurrencyLimit int    `json:",omitzero"`
	Coalesce         bool   `json:",omitzero"`
	RequireSameInput bool   `json:",omitzero"`

	Labels   map[string]string `json:",omitzero"`
	Metadata map[string]string `json:",omitzero"`
	Redact   []string          `json:",omitzero"`
	Expire   []task.Expiry     `json:",omitzero"`

	Node         string      `json:",omitzero"`
	Needs        []task.Edge `json:",omitzero"`
	AllowFailure bool        `json:",omitzero"`

	UndoOf task.ID `json:",omitzero"`
}

func newDraft(n *task.New) draft {
	d := draft{draftFields: draftFields(*n), Input: n.Input} // does not compile if task.New has other fields
	d.draftFields.Input = nil
	return d
}

// task returns the task, without the fields of tasks of jobs.
func (d *draft) task() task.New {
	n := task.New(d.draftFields)
	n.Input = d.Input
	return n
}

func packDrafts(list []draft) ([]byte, error) {
	b, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode drafts: %w", err)
	}
	return b, nil
}

func unpackDrafts(b []byte) (list []draft, err error) {
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("decode drafts: %w", err)
	}
	var before *draft
	for i := range list {
		d := &list[i]
		if d.Cleanup {
			d.CleanupWhenCancelled, d.Cleanup = true, false
		}
		if d.Like && before != nil {
			id, node := d.ID, d.Node
			d.draftFields, d.Like = before.draftFields, false
			d.ID, d.Node = id, node
		}
		if !d.More {
			before = d
		}
	}
	return list, nil
}

// like reports whether two tasks differ at most in their IDs, nodes, inputs and needs.
func like(a, b *draftFields) bool {
	return a.Type == b.Type && a.Queue == b.Queue && a.SchemaVersion == b.SchemaVersion && a.Priority == b.Priority &&
		a.Delay == b.Delay && a.At.Equal(b.At) && a.ExpireAfter == b.ExpireAfter &&
		a.MaxAttempts == b.MaxAttempts && a.MaxRepairs == b.MaxRepairs && a.MaxCost == b.MaxCost && a.MaxNoProgress == b.MaxNoProgress &&
		a.Backoff == b.Backoff && a.BackoffMax == b.BackoffMax && a.Timeout == b.Timeout && a.Options == b.Options &&
		a.IdempotencyKey == b.IdempotencyKey && a.ConcurrencyKey == b.ConcurrencyKey && a.ConcurrencyLimit == b.ConcurrencyLimit &&
		a.Coalesce == b.Coalesce && a.RequireSameInput == b.RequireSameInput && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Metadata, b.Metadata) &&
		slices.Equal(a.Redact, b.Redact) && slices.Equal(a.Expire, b.Expire) && a.AllowFailure == b.AllowFailure && a.UndoOf == b.UndoOf
}

// packChildren encodes the children of one bite.
func packChildren(list []task.New) ([]byte, error) {
	drafts := make([]draft, len(list))
	for i := range list {
		drafts[i] = newDraft(&list[i])
	}
	return packDrafts(drafts)
}

func unpackChildren(b []byte) ([]task.New, error) {
	drafts, err := unpackDrafts(b)
	if err != nil {
		return nil, err
	}
	list := make([]task.New, len(drafts))
	for i := range drafts {
		list[i] = drafts[i].task()
	}
	return list, nil
}

// packEdges encodes needs in their order.
func packEdges(needs []task.Edge) (runs []edgeRun) {
	for i := range needs {
		if len(runs) == 0 || runs[len(runs)-1].Kind != needs[i].Kind {
			runs = append(runs, edgeRun{Kind: needs[i].Kind})
		}
		last := &runs[len(runs)-1]
		last.IDs = append(last.IDs, needs[i].Needs[:]...)
	}
	return runs
}

func unpackEdges(runs []edgeRun) (needs []task.Edge) {
	for i := range runs {
		for ids := runs[i].IDs; len(ids) >= len(task.ID{}); ids = ids[len(task.ID{}):] {
			needs = append(needs, task.Edge{Needs: task.ID(ids[:len(task.ID{})]), Kind: runs[i].Kind})
		}
	}
	return needs
}
