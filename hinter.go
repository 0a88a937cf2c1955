package weaver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// hintTimeout is the time that an enqueue waits for the transport.
	hintTimeout = 100 * time.Millisecond
	// hintPause is the time without hints after a failed push: an outage of the transport must not
	// slow down every enqueue.
	hintPause = 5 * time.Second
	// maxHints is the maximum number of hints of one enqueue. The publisher sends the others.
	maxHints = 100
)

// hinter sends hints of enqueued tasks. A nil hinter does nothing.
type hinter struct {
	transport delivery.Transport
	began     time.Time
	resume    atomic.Int64 // no push before this time, as an offset from began
}

func newHinter(t delivery.Transport) *hinter {
	if t == nil {
		return nil
	}
	return &hinter{transport: t, began: time.Now()}
}

// push sends hints of the created tasks that are due at once. Their enqueue has committed. Crash
// here, or after an error: a publisher sends the hints.
func (h *hinter) push(ctx context.Context, ns string, tasks []task.New, got []store.Enqueued) {
	if h == nil || int64(time.Since(h.began)) < h.resume.Load() {
		return
	}
	var hints []delivery.Hint
	for i := range min(len(tasks), len(got)) {
		t := &tasks[i]
		if got[i].Disposition == store.DispositionCreated && t.Delay <= 0 && t.At.IsZero() && len(t.Needs) == 0 && len(hints) < maxHints {
			hints = append(hints, delivery.Hint{Lane: delivery.Lane{Queue: t.Queue, Type: t.Type}, Task: t.ID})
		}
	}
	if len(hints) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintTimeout)
	defer cancel()
	if err := h.transport.Push(ctx, ns, hints); err != nil {
		h.resume.Store(int64(time.Since(h.began) + hintPause))
	}
}

// HintCounts counts the hints of an engine with Config.Delivery, since New.
type HintCounts struct {
	Pushed  int64 // taken by the transport
	Failed  int64 // pushes without an answer; the hints are pushed again
	Refused int64 // refused by the transport for good; their tasks are claimed without hints
	Popped  int64 // received
	Useless int64 // of Popped: the task could not be claimed here, for example because another worker had it
}

// Hints returns the counts of hints.
func (e *Engine) Hints() HintCounts { return HintCounts(e.inner.Hints()) }
