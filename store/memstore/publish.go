package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Publish implements store.Ops.
func (s *Store) Publish(ctx context.Context, ns string, req store.PublishRequest) (store.PublishResult, error) {
	if req.Hold <= 0 {
		req.Hold = store.DefaultPublishHold
	}
	var res store.PublishResult
	err := s.do(ctx, ns, func(o *op) {
		o.sent(req.Pushed)
		if req.Limit > 0 {
			res = o.unsent(req)
		}
	})
	return res, err
}

func (o *op) unsent(req store.PublishRequest) store.PublishResult {
	res := store.PublishResult{Next: -1}
	lanes, next := o.published()
	var found []store.DispatchRow
	for _, rows := range lanes {
		for _, d := range rows {
			if d.SentUntil.After(o.now) {
				next = rules.Earliest(next, d.SentUntil)
				continue
			}
			found = append(found, d)
		}
	}
	slices.SortFunc(found, byPlaceOf)
	if len(found) > req.Limit {
		found, next = found[:req.Limit], o.now
	}
	for _, d := range found {
		res.Mark = rules.Instant(o.now.Add(req.Hold))
		d.SentUntil = res.Mark
		d.Attempts++
		o.dispatch[d.Task] = d
		res.Tasks = append(res.Tasks, store.UnsentTask{Task: d.Task, Queue: d.Queue, Type: d.Type, Attempts: d.Attempts})
	}
	res.Next = until(next, o.now)
	return res
}

// publishedLane is a lane of one priority.
type publishedLane struct {
	queue, taskType string
	priority        int
}

func byPlaceOf(a, b store.DispatchRow) int { return byPlace(placeOf(a), placeOf(b)) }

// published returns the first due rows of each lane, whether sent or not, and the time at which another row is due.
func (o *op) published() (lanes map[publishedLane][]store.DispatchRow, next time.Time) {
	lanes = make(map[publishedLane][]store.DispatchRow)
	for _, d := range o.dispatch {
		switch {
		case o.pauseOf(d.Queue, d.Type) != task.PauseNone:
		case d.AvailableAt.After(o.now):
			next = rules.Earliest(next, d.AvailableAt)
		default:
			l := publishedLane{d.Queue, d.Type, d.Priority}
			lanes[l] = append(lanes[l], d)
		}
	}
	for l, rows := range lanes {
		slices.SortFunc(rows, byPlaceOf)
		lanes[l] = rows[:min(len(rows), rules.PublishLooks)]
	}
	return lanes, next
}

// hints describes the hints that are to be sent.
func (o *op) hints() (h store.HintsOverview) {
	one := store.CountOf(1)
	lanes, _ := o.published()
	for _, rows := range lanes {
		for i := range rows {
			d := &rows[i]
			if d.Refused() {
				h.Refused = h.Refused.Plus(one)
			}
			if !d.SentUntil.After(o.now) {
				due := d.AvailableAt
				if d.SentUntil.After(due) {
					due = d.SentUntil
				}
				h.Unsent, h.Since = h.Unsent.Plus(one), rules.Earliest(h.Since, due)
			}
		}
	}
	return h
}

func (o *op) sent(rows []store.Pushed) {
	for _, r := range rows {
		// A row without the mark was written again, or is with another publisher.
		if d, ok := o.dispatch[r.Task]; ok && !r.Mark.IsZero() && d.SentUntil.Equal(r.Mark) {
			d.SentUntil, d.LastError = rules.Instant(o.now.Add(r.For)), r.Error
			o.dispatch[r.Task] = d
		}
	}
}
