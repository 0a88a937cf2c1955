package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxCauses is how many needs, holders or tasks of a job are told one by one.
const maxCauses = 5

// causes follows what a task waits for, or what ended it, to the root, and
// collects on the way what a person can do there. subject begins the
// sentences.
func (e *explainer) causes(ctx context.Context, h *store.History, subject string, depth int) ([]cause, error) {
	t := &h.Task
	switch {
	case t.State == task.Pending && t.Waiting == task.WaitDeps:
		return e.needs(ctx, h, subject+" waits for", depth, func(n store.Need) bool { return !n.Done })
	case t.State == task.Cancelled && t.Error != nil && (t.Error.Kind == task.KindDependencyFailed || t.Error.Kind == task.KindNotNeeded):
		causes, err := e.needs(ctx, h, subject+" needed", depth, func(n store.Need) bool {
			holds, ended := n.Kind.Holds(n.State)
			return ended && !holds
		})
		if err == nil && len(causes) == 0 && t.Error.Kind == task.KindDependencyFailed {
			// Its need was retried since, or was deleted: only then it can go on alone.
			e.act(h, depth)
		}
		return causes, err
	case t.State == task.Pending && t.Waiting == task.WaitConcurrency:
		return e.holders(ctx, h, subject)
	case t.State == task.Pending && t.Waiting == task.WaitPaused:
		e.act(h, depth)
		return e.pause(h), nil
	}
	e.act(h, depth)
	return nil, nil
}

// needs tells of the needs that count, those that want a person first.
func (e *explainer) needs(ctx context.Context, h *store.History, begin string, depth int, counts func(store.Need) bool) ([]cause, error) {
	open := slices.DeleteFunc(slices.Clone(h.Needs), func(n store.Need) bool { return !counts(n) })
	slices.SortStableFunc(open, func(a, b store.Need) int { return urgency(b.State) - urgency(a.State) })
	var causes []cause
	for i, n := range open {
		if i == maxCauses {
			causes = append(causes, cause{Kind: causeMore, Sentence: fmt.Sprintf("%s %s more: `%s` lists them.", begin, text.Plural(len(open)-i, "task"), e.command("task", "show", h.Task.ID.String()))})
			break
		}
		c, err := e.need(ctx, n, begin, depth)
		if err != nil {
			return nil, err
		}
		causes = append(causes, c)
	}
	return causes, nil
}

// urgency orders needs: those that do not move by themselves come first.
func urgency(s task.State) int {
	return slices.Index([]task.State{task.Succeeded, task.Pending, task.Ready, task.Running, task.Cancelled, task.Failed, task.Blocked}, s)
}

func (e *explainer) need(ctx context.Context, n store.Need, begin string, depth int) (cause, error) {
	c := cause{Kind: causeNeed, TaskID: n.ID, State: n.State}
	h, err := e.read.History(ctx, n.ID)
	if errors.Is(err, store.ErrNotFound) {
		c.Sentence = fmt.Sprintf("%s %s, which is not there any more.", begin, n.ID)
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.State = h.Task.State
	c.Sentence = fmt.Sprintf("%s %s%s, which %s", begin, label(&h.Task), condition(n.Kind), e.clock.standing(&h))
	switch {
	case e.seen[n.ID]:
		c.Sentence += " (see above)."
		return c, nil
	case depth >= e.depth:
		c.Sentence += fmt.Sprintf("; `%s` goes on from there.", e.command("why", n.ID.String()))
		return c, nil
	}
	c.Sentence = text.Stop(c.Sentence)
	e.seen[n.ID] = true
	c.Because, err = e.causes(ctx, &h, short(&h.Task), depth+1)
	return c, err
}

// condition tells of needs that are not for success.
func condition(k task.EdgeKind) string {
	switch k {
	case task.OnFailed:
		return " to fail"
	case task.OnDone:
		return " to end"
	}
	return ""
}

// holders tells who has the concurrency key.
func (e *explainer) holders(ctx context.Context, h *store.History, subject string) ([]cause, error) {
	if len(h.Holders) == 0 {
		return []cause{{Kind: causeKey, Sentence: "Nobody holds the key right now: a worker takes it as soon as it has a free slot."}}, nil
	}
	var causes []cause
	for i, id := range h.Holders {
		if i == maxCauses {
			causes = append(causes, cause{Kind: causeMore, Sentence: fmt.Sprintf("%s more hold it.", text.Plural(len(h.Holders)-i, "task"))})
			break
		}
		t, err := e.read.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // ended and deleted between the two reads
		}
		if err != nil {
			return nil, err
		}
		causes = append(causes, cause{
			Kind: causeKey, TaskID: id, State: t.State,
			Sentence: fmt.Sprintf("The key is held by %s, which %s; %s runs when it leaves, after those that were due earlier.",
				label(&t), e.clock.standing(&store.History{Task: t}), lower(subject)),
		})
		e.offer(action{e.command("why", id.String()), "tells why the holder has not ended"})
	}
	return causes, nil
}

// pause tells who stopped the queue.
func (e *explainer) pause(h *store.History) []cause {
	p := h.QueuePause
	if p == nil {
		return nil
	}
	return []cause{{Kind: causePause, Sentence: text.Stop("The queue was paused " + e.clock.when(p.At) + by(p.Actor, p.Reason))}}
}

// act offers what a person can do about the task that was asked for, or about
// one that is the root of its wait.
func (e *explainer) act(h *store.History, depth int) {
	t := &h.Task
	id, name, asked := t.ID.String(), short(t), depth == 1
	switch {
	case t.State == task.Blocked:
		e.offer(action{e.command("task", "unblock", id), "lets " + name + " go on; --input gives its handler an answer"})
		if asked {
			e.offer(action{e.command("task", "cancel", id), "gives " + name + " up, and with it what needs it"})
		}
	case t.State == task.Failed, t.State == task.Cancelled && (t.Error == nil || t.Error.Kind != task.KindNotNeeded):
		effect := "starts " + name + " again with all its attempts ahead; recorded steps stay"
		if slices.ContainsFunc(h.Dependents, func(n store.Need) bool { return n.State == task.Cancelled }) {
			effect += ", and what was cancelled because of it revives"
		}
		e.offer(action{e.command("task", "retry", id), effect})
	case t.State == task.Running && t.CancelRequested:
		e.offer(action{e.command("task", "cancel", "--force", id), "takes the lease of " + name + " away and ends it at once, whatever its handler does"})
	case t.State == task.Running && asked:
		e.offer(action{e.command("task", "cancel", id), "asks " + name + " to end"})
	case t.State == task.Pending && t.Waiting == task.WaitPaused:
		e.offer(action{e.command("queue", "resume", t.Queue), "lets the tasks of the queue run"})
	}
}

// offer adds an action once.
func (e *explainer) offer(a action) {
	if !slices.Contains(e.actions, a) {
		e.actions = append(e.actions, a)
	}
}

// lower makes a subject fit into the middle of a sentence.
func lower(subject string) string {
	if subject == "It" {
		return "this one"
	}
	return subject
}
