package memstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The copies below are deep and normalize values as a database returns them: empty maps,
// lists and texts are nil.

func copyRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return slices.Clone(raw)
}

func copyMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

func copyList[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

func copyPtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copyTask(t *task.Task) task.Task {
	c := *t
	c.Input = copyRaw(t.Input)
	c.Output = copyRaw(t.Output)
	c.UnblockInput = copyRaw(t.UnblockInput)
	c.Error = copyPtr(t.Error)
	c.Undo = t.Undo.Clone()
	c.Progress = copyPtr(t.Progress)
	c.Labels = copyMap(t.Labels)
	c.Metadata = copyMap(t.Metadata)
	c.Redact = slices.Clone(t.Redact)
	c.Expire = slices.Clone(t.Expire)
	return c
}

func copyJob(j *task.Job) task.Job {
	c := *j
	c.Meta, c.BasedOn = copyMap(j.Meta), slices.Clone(j.BasedOn)
	return c
}

func copyAttempt(a task.Attempt) task.Attempt {
	a.Error = copyPtr(a.Error)
	a.StepsRun, a.StepsUnreached = copyList(a.StepsRun), copyList(a.StepsUnreached)
	a.Notes = copyMap(a.Notes)
	return a
}

func copyEdge(e *store.EdgeRow) store.EdgeRow {
	c := *e
	c.EndedError = copyPtr(e.EndedError)
	return c
}

func copyStep(s task.Step) task.Step {
	s.Value = copyRaw(s.Value)
	s.Redact = slices.Clone(s.Redact)
	s.Error = copyPtr(s.Error)
	return s
}

func copySignal(s task.Signal) task.Signal {
	s.Payload = copyRaw(s.Payload)
	return s
}

// copyDecision copies open types through JSON, because every other store returns the
// evidence in that form: see task.Reason.
func copyDecision(d task.Decision) (task.Decision, error) {
	d.ChildIDs, d.Reason.Asked = copyList(d.ChildIDs), copyPtr(d.Reason.Asked)
	if len(d.Reason.Evidence) == 0 {
		d.Reason.Evidence = nil
		return d, nil
	}
	raw, err := json.Marshal(d.Reason.Evidence)
	if err != nil {
		return d, fmt.Errorf("encode the decision's evidence: %w", err)
	}
	d.Reason.Evidence = nil
	err = jsonnumber.Unmarshal(raw, &d.Reason.Evidence)
	if jsonnumber.PlainMap(d.Reason.Evidence); err != nil {
		return d, fmt.Errorf("decode the decision's evidence: %w", err)
	}
	return d, nil
}

// storedDecision copies a stored decision, which was encoded before.
func storedDecision(d task.Decision) task.Decision {
	c, err := copyDecision(d)
	if err != nil {
		panic("memstore: a stored decision does not encode: " + err.Error())
	}
	return c
}

func copyAll[T any](list []T, one func(T) T) []T {
	var out []T
	for _, v := range list {
		out = append(out, one(v))
	}
	return out
}
