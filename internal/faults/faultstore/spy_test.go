package faultstore_test

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// spy is a store that records the methods called. It returns non-zero results, and errSpy
// unless ok is set.
type spy struct {
	store.Store
	ok    bool
	calls []string

	// If hold is set, Claim sends its context to ctx and waits for hold.
	hold chan struct{}
	ctx  chan context.Context
}

var errSpy = errors.New("the spy's own error")

func newSpy(ok bool) *spy {
	s := &spy{ok: ok, ctx: make(chan context.Context, 1)}
	s.Store = storehook.New(nil, &storehook.Hooks{
		Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			s.calls = append(s.calls, c.Method)
			if c.Method == "Claim" && s.hold != nil {
				s.ctx <- ctx
				<-s.hold
			}
			return next(ctx)
		},
		Enqueue:   answers[storehook.Submission](s, make([]store.Enqueued, 1)),
		Operate:   answers[[]store.Command](s, make([]store.CommandResult, 1)),
		Join:      answers[store.WorkerInfo](s, storehook.None{}),
		Leave:     answers[store.WorkerID](s, storehook.None{}),
		Claim:     answers[store.ClaimRequest](s, store.ClaimResult{Next: 1}),
		Heartbeat: answers[store.HeartbeatRequest](s, make([]store.Beat, 1)),
		Finish:    answers[[]store.Finish](s, make([]store.FinishResult, 1)),
		Record:    answers[[]store.Record](s, make([]store.RecordResult, 1)),
		Reap:      answers[store.ReapRequest](s, store.ReapResult{Next: 1}),
		Ready:     answers[storehook.None](s, storehook.None{}),
		Tasks:     answers[[]task.ID](s, make([]task.Task, 1)),
		List:      answers[store.Filter](s, storehook.Page[task.Task]{Rows: make([]task.Task, 1), Next: "next"}),
		History:   answers[task.ID](s, store.History{Holders: make([]task.ID, 1)}),
		Needs:     answers[task.ID](s, make([]store.Need, 1)),
		Jobs:      answers[store.JobFilter](s, storehook.Page[task.Job]{Rows: make([]task.Job, 1), Next: "next"}),
		Overview:  answers[store.OverviewRequest](s, store.Overview{Queues: make([]store.Queue, 1)}),
		Graph:     answers[store.GraphRequest](s, store.Graph{Next: "next"}),
		Audit:     answers[store.AuditFilter](s, storehook.Page[store.AuditEntry]{Rows: make([]store.AuditEntry, 1), Next: "next"}),
		Snapshot:  answers[storehook.None](s, &store.Snapshot{}),

		Collect: answers[store.CollectRequest](s, store.CollectResult{Tasks: 1}),

		StepTx:          answers[*storehook.StepTx](s, store.RecordResult{Same: true}),
		Blobs:           answers[store.BlobFilter](s, make([]store.BlobUse, 1)),
		Artifact:        answers[task.ID](s, task.Artifact{Name: "a"}),
		RewriteValues:   answers[storehook.Rewrite](s, storehook.Rewritten{Swapped: 1, Next: "next"}),
		Types:           answers[[]string](s, make([]store.AnnouncedType, 1)),
		Scan:            answers[func(*store.Part) error](s, storehook.None{}),
		Scrub:           answers[storehook.None](s, store.Scrubbed{Done: true}),
		Publish:         answers[store.PublishRequest](s, store.PublishResult{Next: 1}),
		Schedules:       answers[store.ScheduleFilter](s, store.SchedulePage{Next: 1}),
		Limits:          answers[store.LimitFilter](s, store.LimitPage{Now: time.Unix(1, 0)}),
		Migrate:         answers[storehook.None](s, storehook.None{}),
		MigrationStatus: answers[storehook.None](s, make([]store.MigrationStatus, 1)),
		Orphans:         answers[[]task.ID](s, make([]task.ID, 1)),
		Events:          answers[storehook.EventsAfter](s, make([]store.EventRow, 1)),
		Feed:            answers[store.FeedRequest](s, store.FeedPage{Next: 1}),
		WriteStats:      answers[[]store.StatRow](s, storehook.None{}),
		ReadStats:       answers[store.StatsQuery](s, store.StatsPage{Next: store.Now()}),
	})
	return s
}

func answers[A, R any](s *spy, answer R) storehook.Hook[A, R] {
	return func(context.Context, A, func() (R, error)) (R, error) {
		if s.ok {
			return answer, nil
		}
		return answer, errSpy
	}
}

// methods returns the names of the methods of store.Store that can fail: those with a context.
func methods() (names []string) {
	for i := range reflect.TypeFor[store.Store]().NumMethod() {
		m := reflect.TypeFor[store.Store]().Method(i)
		if m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() && m.Name != "Warnings" {
			names = append(names, m.Name)
		}
	}
	return names
}

// call calls a method of a store with zero arguments. answered reports whether every
// result is non-zero. For a method that returns only an error it reports whether the
// error is nil or the spy's.
func call(ctx context.Context, s store.Store, method string) (answered bool, err error) {
	m := reflect.ValueOf(s).MethodByName(method)
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < m.Type().NumIn(); i++ {
		args = append(args, reflect.Zero(m.Type().In(i)))
	}
	var out []reflect.Value
	if m.Type().IsVariadic() {
		out = m.CallSlice(args)
	} else {
		out = m.Call(args)
	}
	last := len(out) - 1
	err, _ = out[last].Interface().(error)
	if last == 0 {
		return err == nil || errors.Is(err, errSpy), err
	}
	answered = true
	for _, v := range out[:last] {
		answered = answered && !v.IsZero()
	}
	return answered, err
}
