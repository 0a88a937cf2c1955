package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// HintCounts counts the hints of an engine since it was made.
type HintCounts struct {
	Pushed  int64 // taken by the transport
	Failed  int64 // not taken, or without an answer; they are pushed again
	Refused int64 // refused for good
	Popped  int64 // received
	Useless int64 // of Popped: this worker could not claim the task, for example because another one had
}

// hintCounts are HintCounts that change.
type hintCounts struct{ pushed, failed, refused, popped, useless atomic.Int64 }

func (c *hintCounts) read() HintCounts {
	return HintCounts{Pushed: c.pushed.Load(), Failed: c.failed.Load(), Refused: c.refused.Load(), Popped: c.popped.Load(), Useless: c.useless.Load()}
}

// hintReader pops hints from the transport while the worker has free slots. The claimer claims their tasks by ID. The
// store checks each ID in the claim: a hint may name any task, or an unknown one.
type hintReader struct {
	*env
	claimer signal // hints are there
	wake    signal // the claimer waits for hints, or took some

	mu      sync.Mutex
	lanes   []delivery.Lane // to pop
	limit   int             // hints to pop; 0: none
	got     []task.ID       // popped, and not claimed
	useless int             // consecutive batches without a claimed task
	stop    func()          // ends the waiting Pop; nil: there is none
}

func newHintReader(e *env, claimer signal) *hintReader {
	return &hintReader{env: e, claimer: claimer, wake: newSignal()}
}

// enabled reports whether the engine has a transport.
func (h *hintReader) enabled() bool { return h.Delivery != nil }

// take returns the popped hints for a claim, and makes run pop those that the request could claim.
func (h *hintReader) take(req *store.ClaimRequest) []task.ID {
	lanes := lanesOf(req)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil && (req.Limit == 0 || !slices.Equal(lanes, h.lanes)) {
		h.stop()
		h.stop = nil
	}
	h.lanes, h.limit = lanes, req.Limit
	n := min(len(h.got), req.Limit)
	var ids []task.ID // nil without hints: the claim is direct
	if n > 0 {
		ids = slices.Clone(h.got[:n])
		h.got = h.got[n:]
	}
	if len(h.got) == 0 && req.Limit > 0 {
		h.wake.Set()
	}
	return ids
}

// lanesOf returns the lanes of a claim, in a fixed order.
func lanesOf(req *store.ClaimRequest) []delivery.Lane {
	if req.Limit == 0 {
		return nil
	}
	var lanes []delivery.Lane
	for t := range req.Types {
		queues, bound := req.Bound[t]
		switch {
		case bound:
			for _, q := range queues {
				if req.Queues == nil || req.Queues[q] > 0 {
					lanes = append(lanes, delivery.Lane{Queue: q, Type: t})
				}
			}
		case req.Queues == nil:
			lanes = append(lanes, delivery.Lane{Type: t})
		default:
			for q := range req.Queues {
				lanes = append(lanes, delivery.Lane{Queue: q, Type: t})
			}
		}
	}
	slices.SortFunc(lanes, func(a, b delivery.Lane) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Queue, b.Queue))
	})
	return lanes
}

// claimed records that a claim of n hinted tasks leased got of them.
func (h *hintReader) claimed(n, got int) {
	h.hints.useless.Add(int64(max(0, n-got)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.useless++; got > 0 {
		h.useless = 0
	}
}

func (h *hintReader) run(ctx context.Context) error {
	pause := backoff{least: 100 * time.Millisecond, most: 5 * time.Second}
	for ctx.Err() == nil {
		pop, cancel := context.WithCancel(ctx)
		lanes, limit, rest := h.begin(cancel)
		switch {
		case limit == 0:
			cancel()
			wait(ctx, -1, h.wake)
			continue
		case rest > 0: // a transport full of useless hints must not make the worker ask the store all the time
			wait(pop, rest, nil)
		}
		began := time.Now()
		ids, err := h.Delivery.Pop(pop, h.Namespace, lanes, limit, h.Poll)
		stopped := pop.Err() != nil
		cancel()
		h.keep(ids, limit)
		switch {
		case err == nil && (len(ids) > 0 || time.Since(began) >= h.Poll/2):
			pause.reset()
		case ctx.Err() != nil || stopped:
		case errors.Is(err, delivery.ErrClosed):
			h.Log.Warn("the delivery transport is closed: this worker claims tasks without hints")
			return nil
		case err != nil:
			h.repeats.warn(h.Log, "receive hints: tasks are claimed without", err)
			wait(ctx, pause.next(), nil)
		default: // an answer without hints that did not wait
			wait(ctx, pause.next(), nil)
		}
	}
	return nil
}

// begin returns what to pop. limit is 0 while the claimer has no free slot, or has hints that it did not take.
func (h *hintReader) begin(stop func()) (lanes []delivery.Lane, limit int, rest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limit == 0 || len(h.got) > 0 || len(h.lanes) == 0 {
		return nil, 0, 0
	}
	h.stop = stop
	if h.useless > 1 {
		rest = min(10*time.Millisecond<<min(h.useless-2, 10), h.Poll)
	}
	return h.lanes, h.limit, rest
}

// keep hands popped hints to the claimer. Hints over the limit are dropped.
func (h *hintReader) keep(ids []task.ID, limit int) {
	h.mu.Lock()
	h.stop = nil
	h.got = append(h.got, ids[:min(len(ids), limit)]...)
	h.mu.Unlock()
	if len(ids) > 0 {
		h.hints.popped.Add(int64(len(ids)))
		h.hints.useless.Add(int64(len(ids) - min(len(ids), limit)))
		h.claimer.Set()
	}
}
