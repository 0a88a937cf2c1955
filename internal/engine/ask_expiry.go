package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CodeNoAnswer is the error code recorded for a question whose answer did not come in time.
const CodeNoAnswer = "no_answer"

// noAnswer is the input that unblocks a task when the time for its answer ends.
var noAnswer = json.RawMessage(`{"weaver:no_answer":true}`)

// questionsEvery is the interval at which questions of other processes are checked.
const questionsEvery = time.Minute

// questions unblocks tasks of this worker's types when the time for an answer
// (task.Error.AskUntil) ends. It remembers the questions of this process. It lists those of
// all processes at the start and, if other processes may ask, once a minute.
type questions struct {
	*env
	wake signal

	mu   sync.Mutex
	next time.Time // the earliest known end, by the local clock; zero: unknown
}

func newQuestions(e *env) *questions { return &questions{env: e, wake: newSignal()} }

// asked records that a task waits for an answer until an instant of the store's clock.
func (q *questions) asked(until, now time.Time) {
	if until.IsZero() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := time.Now().Add(until.Sub(now)); q.next.IsZero() || at.Before(q.next) {
		q.next = at
		q.wake.Set()
	}
}

func (q *questions) run(ctx context.Context) error {
	for ctx.Err() == nil {
		q.look(ctx)
		looked := time.Now()
		for ctx.Err() == nil {
			pause := q.pause(looked)
			if pause == 0 {
				break
			}
			wait(ctx, pause, q.wake)
		}
	}
	return nil
}

// pause returns the time until the next look; < 0: wait until a question is asked.
func (q *questions) pause(looked time.Time) time.Duration {
	pause := time.Duration(-1)
	if !q.complete {
		pause = max(questionsEvery-time.Since(looked), 0)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.next.IsZero() {
		if d := max(time.Until(q.next), 0); pause < 0 || d < pause {
			pause = d
		}
	}
	return pause
}

// look unblocks the tasks whose time for an answer has ended, and sets the next end. After an error it is called
// again a minute later.
func (q *questions) look(ctx context.Context) {
	q.mu.Lock()
	q.next = time.Time{}
	q.mu.Unlock()
	if len(q.handled) == 0 {
		return
	}
	filter := store.Filter{States: []task.State{task.Blocked}, Types: q.handled, Limit: store.MaxLimit}
	for {
		call, cancel := context.WithTimeout(ctx, q.lease().Call())
		tasks, next, err := q.Store.List(call, q.Namespace, filter)
		cancel()
		if err != nil {
			q.again(ctx, err)
			return
		}
		now := q.storeTime()
		for i := range tasks {
			t := &tasks[i]
			switch {
			case t.Error == nil || t.Error.AskUntil.IsZero():
			case t.Error.AskUntil.After(now):
				q.asked(t.Error.AskUntil, now)
			default:
				q.end(ctx, t)
			}
		}
		if filter.After = next; next == "" {
			return
		}
	}
}

// end unblocks a task without an answer.
func (q *questions) end(ctx context.Context, t *task.Task) {
	ctx, cancel := context.WithTimeout(ctx, q.lease().Call())
	defer cancel()
	got, err := q.Store.Operate(ctx, q.Namespace, store.UnblockTask{
		Audit: store.Audit{By: "weaver", Reason: "nobody answered in time"}, Seen: store.Seen{Epoch: t.Epoch}, Task: t.ID, Input: noAnswer, Ask: t.Error.Ask,
	})
	if err == nil {
		err = got[0].Err
	}
	if err != nil && !errors.Is(err, store.ErrState) && !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrNotFound) {
		q.again(ctx, err)
	}
}

func (q *questions) again(ctx context.Context, err error) {
	if ctx.Err() == nil {
		q.Log.Warn("end questions without an answer in time", "error", err, "retry_in", questionsEvery)
	}
	now := time.Now()
	q.asked(now.Add(questionsEvery), now)
}

// isNoAnswer reports whether the input of an unblock is noAnswer.
func isNoAnswer(input json.RawMessage) bool { return bytes.Equal(input, noAnswer) }
