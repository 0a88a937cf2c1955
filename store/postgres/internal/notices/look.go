package notices

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// look looks every second, while there are listeners, for what they wait for.
func (n *Notices) look(ctx context.Context) error {
	for ctx.Err() == nil {
		timer := time.NewTimer(lookEvery*9/10 + rand.N(lookEvery/5))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		spaces := n.listened()
		for _, ns := range spaces {
			n.lookAt(ctx, ns)
		}
		if len(spaces) == 0 && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-n.wake:
			}
		}
	}
	return nil
}

// listened returns the namespaces that have listeners.
func (n *Notices) listened() (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ns, s := range n.spaces {
		if s.listeners > 0 {
			list = append(list, ns)
		}
	}
	slices.Sort(list)
	return list
}

// lookAt looks at one namespace.
func (n *Notices) lookAt(ctx context.Context, ns string) {
	w := n.wanted(ns)
	call, cancel := context.WithTimeout(ctx, answerWithin)
	found, err := n.cfg.Look(call, ns, w)
	cancel()
	switch {
	case ctx.Err() != nil:
	case err != nil && len(w.Awaited) > 0:
		n.cfg.Listeners.Notify(ns, store.Notice{Tasks: w.Awaited}) // they see by themselves that the store is away
	case err == nil:
		n.cfg.Listeners.Notify(ns, n.noticeOf(ns, &found))
	}
}

func (n *Notices) wanted(ns string) (w Wanted) {
	n.mu.Lock()
	s := n.of(ns)
	w.Running = slices.Collect(maps.Keys(s.running))
	awaiting := slices.Collect(maps.Values(s.awaiting))
	n.mu.Unlock()
	for _, ids := range awaiting { // which take locks of their own
		w.Awaited = append(w.Awaited, ids()...)
	}
	slices.SortFunc(w.Awaited, task.ID.Compare)
	w.Awaited = slices.Compact(w.Awaited)
	return w
}

// noticeOf returns what is new of what was found.
func (n *Notices) noticeOf(ns string, found *Found) store.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	for _, list := range [][]task.ID{found.Stopped, found.Cancels} {
		for _, id := range list { // of those that were asked to cancel it is said once
			delete(s.running, id)
		}
	}
	notice := store.Notice{Cancels: found.Cancels, Tasks: found.Over, Chores: found.Chores}
	if !found.Due.IsZero() && !found.Due.Equal(s.deadline) {
		notice.DeadlineIn(found.In)
	}
	s.deadline = found.Due
	return notice
}
