package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Arrival is the state of a rate (GCRA): Next is the theoretical arrival time of the next start, and
// no task starts before Rest. Times are microseconds of the store's clock.
type Arrival struct{ Next, Rest int64 }

// ClaimLag is the most that a claim's clock may be behind that of the claim that counted before it: a
// claim reads the clock before it takes the lock under which starts are counted.
const ClaimLag = 10 * time.Second

// Fit returns the state for a rate that is set: an arrival further away than after a full burst comes
// from another rate of the key, or from a clock that was set back. changed asks the caller to store it,
// because it depends on now.
func (a Arrival) Fit(r task.Rate, now int64) (fit Arrival, changed bool) { return a.within(r, now, 0) }

// FitClaim is Fit for a claim. An arrival that is too far away by no more than [ClaimLag] stays: another
// claim read the clock later and counted first. To shorten it would let tasks start too early.
func (a Arrival) FitClaim(r task.Rate, now int64) (fit Arrival, changed bool) {
	return a.within(r, now, ClaimLag.Microseconds())
}

func (a Arrival) within(r task.Rate, now, lag int64) (fit Arrival, changed bool) {
	if a.Rest > now+MaxRest.Microseconds()+lag {
		a.Rest, changed = now, true
	}
	if r.Starts == 0 {
		return a, changed
	}
	last := now + spacing(r)*int64(r.Burst)
	if a.Next <= last+lag {
		return a, changed
	}
	a.Next = last
	return a, true
}

// OpenAt returns the earliest time of the next start. A zero rate limits nothing but keeps Rest.
func (a Arrival) OpenAt(r task.Rate) int64 {
	if r.Starts == 0 {
		return a.Rest
	}
	return max(a.Next-spacing(r)*int64(r.Burst-1), a.Rest)
}

// Start returns the state after one more start.
func (a Arrival) Start(r task.Rate, now int64) Arrival {
	if r.Starts == 0 {
		return a
	}
	a.Next = max(a.Next, now) + spacing(r)
	return a
}

// IdleAt returns the time from which on the state is as if it had never been.
func (a Arrival) IdleAt() int64 { return max(a.Next, a.Rest) }

func spacing(r task.Rate) int64 { return r.Spacing().Microseconds() }

// TurnLooks is the number of rows that may not run which a claim passes over in one turn of a lane.
// Then the other lanes have theirs.
const TurnLooks = 16

// MaxRest is the longest time for which a handler may ask a limit to rest.
const MaxRest = 24 * time.Hour

// LimitVerb and UnlimitVerb are the verbs of the audit entries of limits, whose target is limit/NAME.
const (
	LimitVerb   = "set_limit"
	UnlimitVerb = "delete_limit"
)

// LimitTarget returns the target of the audit entries of a limit.
func LimitTarget(name string) string { return "limit/" + name }

// NoLimit is the error for a limit that is not set.
func NoLimit(name string) error { return fmt.Errorf("%w: no limit %q is set", store.ErrNotFound, name) }

// CheckRest returns an error that says what is wrong with a rest, or nil.
func CheckRest(r *store.Rest) error {
	if r.For <= 0 || r.For > MaxRest {
		return fmt.Errorf("limit %q cannot rest for %s: want more than 0, at most %s", r.Name, r.For, MaxRest)
	}
	return store.CheckLimitName(r.Name)
}

// LimitPageSize returns the number of limits of a page.
func LimitPageSize(f *store.LimitFilter) int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
}

// ClosedLimits keeps in the history of a due task the limits that do not let it start. rows are all
// limits of its lane.
func ClosedLimits(h *store.History, rows []store.LimitRow, now time.Time) {
	t := &h.Task
	if t.State != task.Ready {
		return
	}
	for i := range rows {
		l := &rows[i]
		ownRate(l, t)
		if l.Running > 0 && l.InUse >= l.Running || l.OpenAt().After(now) {
			h.Limits = append(h.Limits, *l)
		}
	}
}

// ownRate sets the rate that a task brings along, unless the limit is set.
func ownRate(l *store.LimitRow, t *task.Task) {
	if !l.Set && l.Name == store.LimitRate+t.RateLimit.Key {
		l.Starts, l.Per, l.Burst = t.RateLimit.Starts, t.RateLimit.Per, t.RateLimit.Burst
	}
}
