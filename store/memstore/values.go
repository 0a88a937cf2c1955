package memstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// RewriteValues implements store.Data.
func (s *Store) RewriteValues(ctx context.Context, ns, after string, limit int, fn store.RewriteFunc) (swapped int, next string, err error) {
	values, next, err := s.walkValues(ctx, ns, after, limit)
	if err != nil {
		return 0, "", err
	}
	swaps, err := fn(values)
	if err != nil {
		return 0, next, err
	}
	swapped, err = s.swapValues(ctx, ns, swaps)
	return swapped, next, err
}

// walkValues reads a page of values. Each kind of value is a stage.
func (s *Store) walkValues(ctx context.Context, ns, after string, limit int) (values []store.StoredValue, next string, err error) {
	at, err := rules.ParseValueCursor(after, valueStages)
	if err != nil {
		return nil, "", err
	}
	limit = store.PageLimit(limit)
	err = s.do(ctx, ns, func(o *op) {
		for _, c := range o.cells() {
			place := c.cursor()
			if place.Stage != at.Stage || !valueBefore(at, place) {
				continue
			}
			if len(values) == limit {
				next = at.String()
				return
			}
			at = place
			if raw := c.read(); len(raw) > 0 {
				c.Value = copyRaw(raw)
				values = append(values, c.StoredValue)
			}
		}
		if at.Stage+1 < valueStages {
			next = rules.ValueCursor{Stage: at.Stage + 1}.String()
		}
	})
	return values, next, err
}

func (s *Store) swapValues(ctx context.Context, ns string, swaps []store.ValueSwap) (swapped int, err error) {
	err = s.do(ctx, ns, func(o *op) {
		cells := make(map[store.ValueAt]*cell)
		for _, c := range o.cells() {
			cells[c.ValueAt] = c
		}
		for i := range swaps {
			c := cells[swaps[i].ValueAt]
			if c == nil || c.write == nil || len(swaps[i].Old) == 0 || !bytes.Equal(c.read(), swaps[i].Old) {
				continue
			}
			c.write(copyRaw(swaps[i].New))
			swapped++
		}
	})
	return swapped, err
}

// cell is the place of a stored value.
type cell struct {
	store.StoredValue
	stage int
	read  func() json.RawMessage
	write func(json.RawMessage) // nil if it cannot be replaced
}

func (c *cell) cursor() rules.ValueCursor {
	return rules.ValueCursor{Stage: c.stage, ID: c.Task, Name: c.Name, No: c.No, Try: c.Try}
}

// valueStages is the number of kinds of cells.
const valueStages = 15

func valueBefore(a, b rules.ValueCursor) bool {
	return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Name, b.Name), cmp.Compare(a.No, b.No), cmp.Compare(a.Try, b.Try)) < 0
}

// cells returns all cells in the order of the walk.
func (o *op) cells() (all []*cell) {
	stages := []store.ValueKind{
		store.ValueInput, store.ValueOutput, store.ValueJoinOutput, store.ValueProgress, store.ValueUnblock, store.ValueStep,
		store.ValueSignal, store.ValueCheckpoint, store.ValueEvent, store.ValueLog, store.ValueLink, store.ValueBlob,
		store.ValueOrderRequest, store.ValueOrderResult, store.ValueSchedule,
	}
	add := func(at store.ValueAt, of string, read func() json.RawMessage, write func(json.RawMessage)) *cell {
		c := &cell{StoredValue: store.StoredValue{ValueAt: at, Of: of}, stage: slices.Index(stages, at.Kind), read: read, write: write}
		all = append(all, c)
		return c
	}
	raw := func(at store.ValueAt, of string, p *json.RawMessage) *cell {
		return add(at, of, func() json.RawMessage { return *p }, func(v json.RawMessage) { *p = v })
	}
	for id, r := range o.tasks {
		raw(store.ValueAt{Kind: store.ValueInput, Task: id}, r.Type, &r.Input)
		raw(store.ValueAt{Kind: store.ValueOutput, Task: id}, r.Type, &r.Output)
		raw(store.ValueAt{Kind: store.ValueJoinOutput, Task: id}, r.Type, &r.joinOutput)
		raw(store.ValueAt{Kind: store.ValueUnblock, Task: id}, r.Type, &r.UnblockInput)
		add(store.ValueAt{Kind: store.ValueProgress, Task: id}, r.Type, func() json.RawMessage {
			if r.Progress == nil {
				return nil
			}
			report, _ := json.Marshal(r.Progress) // numbers and a text
			return report
		}, func(v json.RawMessage) {
			report := new(task.Progress)
			if json.Unmarshal(v, report) == nil {
				r.Progress = report
			}
		})
		for i := range o.steps[id] {
			s := &o.steps[id][i]
			raw(store.ValueAt{Kind: store.ValueStep, Task: id, Name: s.Name, No: int64(s.AttemptNo), Try: int64(s.Try)}, s.Signal, &s.Value).StepKind = s.Kind
		}
		for i := range o.signals[id] {
			g := &o.signals[id][i]
			raw(store.ValueAt{Kind: store.ValueSignal, Task: id, No: int64(g.Seq)}, g.Name, &g.Payload)
		}
		for i := range o.checkpoints[id] {
			c := &o.checkpoints[id][i]
			raw(store.ValueAt{Kind: store.ValueCheckpoint, Task: id, Name: c.Name}, "", &c.Value)
		}
		for i := range o.artifacts[id] {
			a := &o.artifacts[id][i]
			raw(store.ValueAt{Kind: store.ValueLink, Task: id, Name: a.ID.String()}, a.Name, &a.LinkValue)
		}
		for i := range o.events[id] {
			e := &o.events[id][i]
			kind := store.ValueEvent
			if e.Log {
				kind = store.ValueLog
			}
			raw(store.ValueAt{Kind: kind, Task: id, No: e.Seq}, e.Type, &e.Body)
		}
	}
	for id, b := range o.blobs {
		if !b.deleting && o.referred(id) {
			add(store.ValueAt{Kind: store.ValueBlob, Task: id}, "", b.Blob.Value, nil)
		}
	}
	for key, ord := range o.orders {
		raw(store.ValueAt{Kind: store.ValueOrderRequest, Name: key}, "", &ord.Row.Body)
		raw(store.ValueAt{Kind: store.ValueOrderResult, Name: key}, "", &ord.Entry.Result)
	}
	for name, s := range o.schedules {
		raw(store.ValueAt{Kind: store.ValueSchedule, Name: name}, "", &s.Work)
	}
	slices.SortFunc(all, func(a, b *cell) int {
		if a.stage != b.stage {
			return a.stage - b.stage
		}
		if valueBefore(a.cursor(), b.cursor()) {
			return -1
		}
		return 1
	})
	return all
}
