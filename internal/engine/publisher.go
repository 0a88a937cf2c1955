package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/store"
)

const (
	// publishLimit is the maximum number of hints of one push.
	publishLimit = 256
	// publishGap is the minimum time between two calls of the store. Tasks that become due meanwhile are published
	// together.
	publishGap = 5 * time.Millisecond
	// publishRest is the pause after a full batch. Workers do not need hints for a backlog: they claim it directly.
	publishRest = 100 * time.Millisecond
	// publishPolls is the number of polls of a worker after which a publisher without news looks for due tasks. Idle
	// workers claim such tasks directly before.
	publishPolls = 5
	// publishSpread is the maximum delay after a notice that every process has: idle workers that have it claim its
	// tasks directly, and not all publishers look at the same time.
	publishSpread = 100 * time.Millisecond
	// refusedFor is the time after which a hint that the transport refuses is tried again. Its task is claimed
	// directly.
	refusedFor = time.Hour
)

// publisher sends hints of due tasks to the transport (W4): it marks their dispatch rows for a short time, commits,
// pushes the hints, and records the outcomes. A hint whose task was not claimed is sent again after RedeliverAfter.
// It runs on every engine with a transport; any number of publishers may run at the same time.
type publisher struct {
	*env
	wake   signal
	own    signal      // a commit of this process woke it
	remote atomic.Bool // a notification that every process has woke it
}

func newPublisher(e *env) *publisher {
	return &publisher{env: e, wake: newSignal(), own: newSignal()}
}

// enabled reports whether the engine has a publisher.
func (p *publisher) enabled() bool {
	return p.Delivery != nil && !p.NoPublisher && p.Store.Capabilities().Has(store.CanPublish)
}

// notify reports a commit.
func (p *publisher) notify(n *store.Notice) {
	if !n.Due && !n.External {
		return
	}
	if n.Remote {
		p.remote.Store(true)
	} else {
		p.own.Set()
	}
	p.wake.Set()
}

func (p *publisher) run(ctx context.Context) error {
	var pushed []store.Pushed // outcomes that are not recorded
	pause := backoff{least: 100 * time.Millisecond, most: 5 * time.Second}
	limit := publishLimit
	for ctx.Err() == nil {
		res, err := p.publish(ctx, store.PublishRequest{Pushed: pushed, Limit: limit})
		if errors.Is(err, store.ErrClosed) {
			return nil // the claimer says so
		}
		if err != nil {
			if ctx.Err() == nil {
				p.repeats.warn(p.Log, "publish hints", err)
			}
			wait(ctx, pause.next(), nil)
			continue
		}
		pause.reset()
		pushed = nil
		if limit == 0 { // the outcomes of a full batch are recorded
			limit = publishLimit
			wait(ctx, publishRest, nil)
			continue
		}
		if len(res.Tasks) == 0 {
			wait(ctx, p.after(res.Next), p.wake)
			if p.remote.Swap(false) {
				wait(ctx, rand.N(publishSpread), p.own)
			}
			wait(ctx, publishGap, nil)
			continue
		}
		// Crash here: the marks end, and a publisher sends the hints.
		failed := false
		pushed, failed = p.push(ctx, res)
		switch {
		case failed:
			wait(ctx, pushAgain(1), nil)
		case res.Next == 0:
			limit = 0
		default:
			wait(ctx, publishGap, nil)
		}
	}
	return nil
}

// after returns the delay before the next call, given the time until the next hint (< 0: unknown).
func (p *publisher) after(next time.Duration) time.Duration {
	if p.complete {
		return next
	}
	poll := publishPolls * (p.Poll*9/10 + rand.N(p.Poll/5+1))
	if next >= 0 && next < poll {
		return next
	}
	return poll
}

func (p *publisher) publish(ctx context.Context, req store.PublishRequest) (store.PublishResult, error) {
	call, cancel := context.WithTimeout(ctx, p.lease().Call())
	defer cancel()
	began := time.Now()
	res, err := p.Store.Publish(call, p.Namespace, req)
	p.called("publish", began, err)
	return res, err
}

// push pushes hints and returns the outcomes. failed reports that the transport did not answer.
func (p *publisher) push(ctx context.Context, res store.PublishResult) (outcomes []store.Pushed, failed bool) {
	hints := make([]delivery.Hint, len(res.Tasks))
	outcomes = make([]store.Pushed, len(res.Tasks))
	for i, t := range res.Tasks {
		hints[i] = delivery.Hint{Lane: delivery.Lane{Queue: t.Queue, Type: t.Type}, Task: t.Task}
		outcomes[i] = store.Pushed{Task: t.Task, Mark: res.Mark, For: p.RedeliverAfter}
	}
	call, cancel := context.WithTimeout(ctx, store.DefaultPublishHold)
	defer cancel()
	err := p.Delivery.Push(call, p.Namespace, hints)
	var refused *delivery.RefusedError
	switch {
	case errors.As(err, &refused):
		taken := len(hints)
		for _, r := range refused.Refused {
			if r.Index < 0 || r.Index >= len(outcomes) || outcomes[r.Index].Error != "" {
				continue
			}
			outcomes[r.Index].For, outcomes[r.Index].Error = refusedFor, store.HintRefused+reasonOf(r.Reason)
			taken--
		}
		p.hints.pushed.Add(int64(taken))
		p.hints.refused.Add(int64(len(hints) - taken))
		p.repeats.warn(p.Log, "the delivery transport refused hints: their tasks are claimed without", err)
	case err != nil:
		for i, t := range res.Tasks {
			outcomes[i].For, outcomes[i].Error = min(pushAgain(t.Attempts), p.RedeliverAfter), reasonOf(err)
		}
		p.hints.failed.Add(int64(len(hints)))
		if ctx.Err() == nil {
			p.repeats.warn(p.Log, "push hints: their tasks are claimed without", err)
		}
		return outcomes, true
	default:
		p.hints.pushed.Add(int64(len(hints)))
	}
	return outcomes, false
}

// pushAgain returns the delay after the n-th failed push of a hint: from a second to a minute.
func pushAgain(n int) time.Duration { return min(time.Second<<min(max(n-1, 0), 6), time.Minute) }

// maxReason is the maximum length of a stored error of the transport, in bytes.
const maxReason = 500

func reasonOf(err error) string {
	text := "no reason was given"
	if err != nil && err.Error() != "" {
		text = err.Error()
	}
	return sanitize(text[:min(len(text), maxReason)])
}

// backoff is an exponential delay.
type backoff struct{ least, most, last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.least), b.most)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }
