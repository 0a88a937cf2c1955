package faultstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// spy is a store that notes which methods were called and gives answers that
// can be told from none; with an error, unless all is well.
type spy struct {
	well  bool
	calls []string

	// With hold, Claim hands out its context and waits.
	hold chan struct{}
	held chan struct{}
	ctx  chan context.Context
}

var errSpy = errors.New("the spy's own error")

func (s *spy) err(method string) error {
	s.calls = append(s.calls, method)
	if s.well {
		return nil
	}
	return errSpy
}

// in returns where Claim's context comes out.
func (s *spy) in() <-chan context.Context {
	c := make(chan context.Context, 1)
	s.ctx = c
	close(s.held)
	return c
}

func (s *spy) Enqueue(context.Context, string, store.Tx, store.Submission) ([]store.Enqueued, error) {
	return make([]store.Enqueued, 1), s.err("Enqueue")
}

func (s *spy) Operate(context.Context, string, ...store.Command) ([]store.CommandResult, error) {
	return make([]store.CommandResult, 1), s.err("Operate")
}
func (s *spy) Join(context.Context, string, store.WorkerInfo) error { return s.err("Join") }
func (s *spy) Leave(context.Context, string, store.WorkerID) error  { return s.err("Leave") }

func (s *spy) Claim(ctx context.Context, _ string, _ store.ClaimRequest) (store.ClaimResult, error) {
	if s.hold != nil {
		<-s.held
		s.ctx <- ctx
		<-s.hold
	}
	return store.ClaimResult{Next: 1}, s.err("Claim")
}

func (s *spy) Heartbeat(context.Context, string, store.HeartbeatRequest) ([]store.Beat, error) {
	return make([]store.Beat, 1), s.err("Heartbeat")
}

func (s *spy) Finish(context.Context, string, ...store.Finish) ([]store.FinishResult, error) {
	return make([]store.FinishResult, 1), s.err("Finish")
}

func (s *spy) Record(context.Context, string, ...store.Record) ([]store.RecordResult, error) {
	return make([]store.RecordResult, 1), s.err("Record")
}

func (s *spy) Reap(context.Context, string, store.ReapRequest) (store.ReapResult, error) {
	return store.ReapResult{Next: 1}, s.err("Reap")
}
func (s *spy) Ready(context.Context) error { return s.err("Ready") }

func (s *spy) Tasks(context.Context, string, ...task.ID) ([]task.Task, error) {
	return make([]task.Task, 1), s.err("Tasks")
}

func (s *spy) List(context.Context, string, store.Filter) ([]task.Task, string, error) {
	return make([]task.Task, 1), "next", s.err("List")
}

func (s *spy) History(context.Context, string, task.ID) (store.History, error) {
	return store.History{Holders: make([]task.ID, 1)}, s.err("History")
}

func (s *spy) Needs(context.Context, string, task.ID) ([]store.Need, error) {
	return make([]store.Need, 1), s.err("Needs")
}

func (s *spy) Job(context.Context, string, task.ID) (task.Job, error) {
	return task.Job{Name: "job"}, s.err("Job")
}

func (s *spy) Jobs(context.Context, string, store.JobFilter) ([]task.Job, string, error) {
	return make([]task.Job, 1), "next", s.err("Jobs")
}

func (s *spy) Queues(context.Context, string) ([]store.Queue, error) {
	return make([]store.Queue, 1), s.err("Queues")
}

func (s *spy) Snapshot(context.Context, string) (*store.Snapshot, error) {
	return &store.Snapshot{}, s.err("Snapshot")
}

type spyNotifier struct{}

func (spyNotifier) Notify(string, func(store.Notice)) (func(), bool) { return func() {}, true }

type spyStepTxer struct{}

func (spyStepTxer) StepTx(context.Context, string, store.Record, time.Duration, func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	return store.RecordResult{}, nil
}

// method is one method of store.Store. call reports whether an answer came;
// for methods that have only an error that is its absence, or the spy's.
type method struct {
	name string
	call func(ctx context.Context, s store.Store) (answered bool, err error)
}

var methods = []method{
	{"Enqueue", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Enqueue(ctx, "ns", nil, store.Submission{})
		return len(r) > 0, err
	}},
	{"Operate", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Operate(ctx, "ns", store.PauseQueue{})
		return len(r) > 0, err
	}},
	{"Join", func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Join(ctx, "ns", store.WorkerInfo{})
		return err == nil || errors.Is(err, errSpy), err
	}},
	{"Leave", func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Leave(ctx, "ns", "w")
		return err == nil || errors.Is(err, errSpy), err
	}},
	{"Claim", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Claim(ctx, "ns", store.ClaimRequest{})
		return r.Next > 0, err
	}},
	{"Heartbeat", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Heartbeat(ctx, "ns", store.HeartbeatRequest{})
		return len(r) > 0, err
	}},
	{"Finish", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Finish(ctx, "ns", store.Finish{})
		return len(r) > 0, err
	}},
	{"Record", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Record(ctx, "ns", store.Record{})
		return len(r) > 0, err
	}},
	{"Reap", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Reap(ctx, "ns", store.ReapRequest{})
		return r.Next > 0, err
	}},
	{"Ready", func(ctx context.Context, s store.Store) (bool, error) {
		err := s.Ready(ctx)
		return err == nil || errors.Is(err, errSpy), err
	}},
	{"Tasks", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Tasks(ctx, "ns", task.ID{})
		return len(r) > 0, err
	}},
	{"List", func(ctx context.Context, s store.Store) (bool, error) {
		r, next, err := s.List(ctx, "ns", store.Filter{})
		return len(r) > 0 && next != "", err
	}},
	{"History", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.History(ctx, "ns", task.ID{})
		return len(r.Holders) > 0, err
	}},
	{"Needs", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Needs(ctx, "ns", task.ID{})
		return len(r) > 0, err
	}},
	{"Job", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Job(ctx, "ns", task.ID{})
		return r.Name != "", err
	}},
	{"Jobs", func(ctx context.Context, s store.Store) (bool, error) {
		r, next, err := s.Jobs(ctx, "ns", store.JobFilter{})
		return len(r) > 0 && next != "", err
	}},
	{"Queues", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Queues(ctx, "ns")
		return len(r) > 0, err
	}},
	{"Snapshot", func(ctx context.Context, s store.Store) (bool, error) {
		r, err := s.Snapshot(ctx, "ns")
		return r != nil, err
	}},
}
