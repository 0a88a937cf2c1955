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

// look polls every second, while there are listeners, for the changes that they wait for.
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

// listened returns the namespaces with listeners.
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

// lookAt polls one namespace.
func (n *Notices) lookAt(ctx context.Context, ns string) {
	w := n.wanted(ns)
	call, cancel := context.WithTimeout(ctx, answerWithin)
	found, err := n.cfg.Look(call, ns, w)
	cancel()
	switch {
	case ctx.Err() != nil:
	case err != nil && len(w.Awaited) > 0:
		n.cfg.Listeners.Notify(ns, store.Notice{Tasks: w.Awaited}) // they notice by themselves that the store is unavailable
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
	for _, ids := range awaiting { // the functions take their own locks
		w.Awaited = append(w.Awaited, ids()...)
	}
	slices.SortFunc(w.Awaited, task.ID.Compare)
	w.Awaited = slices.Compact(w.Awaited)
	return w
}

// noticeOf returns the news in a poll's result.
func (n *Notices) noticeOf(ns string, found *Found) store.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	for _, list := range [][]task.ID{found.Stopped, found.Cancels} {
		for _, id := range list { // a cancel request is announced once
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
