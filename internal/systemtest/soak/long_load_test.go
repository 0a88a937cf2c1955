package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

var (
	soakWork = weaver.Define[order, receipt]("systemtest.soak.work.v1", weaver.Backoff(5*time.Millisecond))
	soakGate = weaver.Define[int, int]("systemtest.soak.gate.v1", weaver.NoRetry(), weaver.Queue("gates"))
)

// soakKinds are the kinds of soakWork.
var soakKinds = []string{"steps", "tx", "sleepy", "flaky", "keyed", "parent", "reports"}

func (s *soak) handlers() []weaver.Handler {
	return []weaver.Handler{
		soakWork.Handler(s.work),
		soakGate.Handler(func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}),
	}
}

func (s *soak) work(ctx context.Context, in order) (out receipt, err error) {
	out.N = in.N
	value, err := weaver.Step(ctx, "first", func(context.Context) (stamp, error) { return stamp{N: in.N}, nil })
	if err != nil {
		return out, err
	}
	switch in.Kind {
	case "tx":
		_, err = weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int, error) {
			if _, err := tx.ExecContext(ctx, "INSERT INTO seen (n) VALUES (?)", in.N); err != nil {
				return 0, err
			}
			_, err := tx.ExecContext(ctx, "DELETE FROM seen WHERE n < ?", in.N-100)
			return in.N, err
		})
	case "sleepy":
		err = weaver.Sleep(ctx, "nap", 10*time.Millisecond)
	case "flaky":
		if weaver.Current(ctx).AttemptCount == 0 {
			return out, errors.New("the first attempt fails")
		}
	case "parent":
		var child weaver.TaskRef
		if child, err = weaver.Start(ctx, "child", soakWork, order{N: in.N}); err == nil {
			value.Child = child.ID.String()
		}
	case "reports":
		err = weaver.Progress(ctx, 1, 2, "half of it")
	}
	if err != nil {
		return out, err
	}
	last, err := weaver.Step(ctx, "last", func(context.Context) (stamp, error) { return value, nil })
	out.Steps = []stamp{last}
	return out, err
}

// startUsers starts all users of the store. Their number and their work are constant; only tasks of jobs are kept.
func (s *soak) startUsers(ctx context.Context) {
	s.run(s.db, "", slots)
	s.run(s.second, jobsNamespace, 2)
	for range 6 {
		s.every(ctx, 15*time.Millisecond, "a customer", func(ctx context.Context) error { return s.customer(ctx, s.clientA) })
	}
	for range 2 {
		s.every(ctx, 15*time.Millisecond, "a customer of the second handle", func(ctx context.Context) error { return s.customer(ctx, s.clientB) })
	}
	s.every(ctx, time.Second, "a job", s.job)
	s.every(ctx, 30*time.Millisecond, "a cancel of a running task", s.cancelRunning)
	s.every(ctx, 30*time.Millisecond, "a cancel of a waiting task", s.cancelWaiting)
	s.every(ctx, 20*time.Millisecond, "a reader", s.read)
	s.every(ctx, 300*time.Millisecond, "a doctor", s.doctor)
	s.every(ctx, 10*time.Millisecond, "a listener", s.listen)
	s.every(ctx, 20*time.Millisecond, "a wait that is given up", s.waitInVain)
	s.every(ctx, 20*time.Millisecond, "a transaction that is rolled back", s.rollBack)
	s.every(ctx, 200*time.Millisecond, "a visitor", s.openThirdHandle)
	s.every(ctx, time.Second, "the audit", s.prune)
}

// customer enqueues a task, waits for it and deletes it.
func (s *soak) customer(ctx context.Context, c *weaver.Client) error {
	n := int(s.numbers.Add(1))
	in := order{N: n, Kind: soakKinds[n%len(soakKinds)]}
	opts := []weaver.EnqueueOption{weaver.Label("n", fmt.Sprint(n)), weaver.IdempotencyKey(fmt.Sprint(n))}
	if in.Kind == "keyed" {
		opts = append(opts, weaver.ConcurrencyKey(fmt.Sprint("key-", n%2)))
	}
	h, err := soakWork.Enqueue(ctx, c, in, opts...)
	if err != nil {
		return err
	}
	out, err := h.Wait(ctx)
	if err != nil {
		return err
	}
	if out.N != n || len(out.Steps) != 1 || out.Steps[0].N != n {
		return fmt.Errorf("task %d answered %+v", n, out)
	}
	if child := out.Steps[0].Child; child != "" {
		id, err := task.ParseID(child)
		if err != nil {
			return err
		}
		if _, err := c.Wait(ctx, id); err != nil {
			return err
		}
		if err := c.Delete(ctx, id); err != nil {
			return err
		}
	}
	s.done.Add(1)
	return c.Delete(ctx, h.ID())
}

func (s *soak) job(ctx context.Context) error {
	j := weaver.NewJob("soak")
	first := j.Add("first", soakWork.With(order{}))
	second := j.Add("second", soakWork.With(order{Kind: "sleepy"}), weaver.Needs(first))
	third := j.Add("third", soakWork.With(order{Kind: "flaky"}), weaver.Needs(first))
	j.Add("last", soakWork.With(order{}), weaver.Needs(second, third))
	h, err := s.jobs.Submit(ctx, j)
	if err != nil {
		return err
	}
	res, err := h.Wait(ctx)
	if err == nil && res.State != task.JobSucceeded {
		err = fmt.Errorf("job %s is %s", h.ID(), res.State)
	}
	return err
}

func (s *soak) cancelRunning(ctx context.Context) error {
	h, err := soakGate.Enqueue(ctx, s.clientA, 0)
	if err != nil {
		return err
	}
	return s.cancel(ctx, h, s.clientA)
}

func (s *soak) cancelWaiting(ctx context.Context) error {
	h, err := soakGate.Enqueue(ctx, s.clientB, 0, weaver.Delay(time.Hour))
	if err != nil {
		return err
	}
	return s.cancel(ctx, h, s.clientB)
}

func (s *soak) cancel(ctx context.Context, h *weaver.Handle[int], c *weaver.Client) error {
	if err := c.Cancel(ctx, h.ID(), weaver.Reason("enough")); err != nil {
		return err
	}
	if _, err := h.Wait(ctx); err == nil {
		return fmt.Errorf("task %s was cancelled and succeeded", h.ID())
	} else if _, ok := errors.AsType[*weaver.TaskError](err); !ok {
		return err
	}
	return c.Delete(ctx, h.ID())
}

// read reads lists, queues and the history of a task, through both handles.
func (s *soak) read(ctx context.Context) error {
	for _, c := range []*weaver.Client{s.clientA, s.clientB} {
		var last weaver.TaskID
		for cursor := "-"; cursor != ""; {
			if cursor == "-" {
				cursor = ""
			}
			tasks, next, err := c.List(ctx, weaver.Filter{Limit: 5, After: cursor})
			if err != nil {
				return err
			}
			for _, t := range tasks {
				last = t.ID
			}
			cursor = next
		}
		if !last.IsZero() {
			if _, err := c.History(ctx, last); err != nil && !errors.Is(err, weaver.ErrNotFound) {
				return err // the task may have been deleted
			}
		}
	}
	if _, _, err := s.jobs.Jobs(ctx, store.JobFilter{Limit: 3}); err != nil {
		return err
	}
	_, err := s.second.Overview(ctx, weaver.DefaultNamespace, store.OverviewRequest{Parts: store.OverviewQueues})
	return err
}

// doctor looks for violations during the run.
func (s *soak) doctor(ctx context.Context) error {
	snap, err := s.second.Snapshot(ctx, weaver.DefaultNamespace)
	if err != nil {
		return err
	}
	if found := store.Check(snap); len(found) > 0 {
		return fmt.Errorf("violations: %v", found)
	}
	return nil
}

// listen registers for notices, receives some, and unregisters.
func (s *soak) listen(ctx context.Context) error {
	for _, db := range []*sqlite.DB{s.db, s.second} {
		notified := make(chan struct{}, 1)
		stop, _ := db.Notify(weaver.DefaultNamespace, nil, func(store.Notice) {
			select {
			case notified <- struct{}{}:
			default:
			}
		})
		select {
		case <-notified:
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		stop()
	}
	return nil
}

// waitInVain waits for a task that does not end, until its context ends.
func (s *soak) waitInVain(ctx context.Context) error {
	for _, c := range []*weaver.Client{s.clientA, s.clientB} {
		h, err := soakGate.Enqueue(ctx, c, 0, weaver.Delay(time.Hour))
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
		_, err = h.Wait(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the wait ended with %w", err)
		}
		if err := s.cancel(ctx, h, c); err != nil {
			return err
		}
	}
	return nil
}

// rollBack enqueues in a transaction that never commits.
func (s *soak) rollBack(ctx context.Context) error {
	tx, err := s.second.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = s.clientB.InTx(sqlite.Tx(tx)).EnqueueTasks(ctx, soakWork.With(order{N: -1}))
	return err
}

// openThirdHandle opens the file a third time, runs an engine for a while and closes it. The engine runs no gates,
// because it would learn of a cancel by another handle only after a second.
func (s *soak) openThirdHandle(ctx context.Context) error {
	s.handles.Lock()
	defer s.handles.Unlock()
	db, err := sqlite.Open(ctx, s.path, sqlite.BusyTimeout(busy))
	if err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{
		Handlers: s.handlers(), Concurrency: 2, Queues: map[string]int{"default": 2}, Logger: stderrLog(),
	})
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err = eng.Run(short)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // its time was over before it began
	}
	_, _, listErr := eng.List(ctx, weaver.Filter{Limit: 1})
	return errors.Join(err, listErr, db.Close())
}

// prune removes old entries of the audit. The audit keeps deleted tasks permanently, so without this the file would
// grow.
func (s *soak) prune(ctx context.Context) error {
	_, err := s.db.DB().ExecContext(ctx, "DELETE FROM weaver_audit WHERE at < ?", time.Now().Add(-time.Second).UnixMicro())
	return err
}
