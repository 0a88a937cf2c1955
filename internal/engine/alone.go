package engine

import "time"

// drainForAlone lets a task that has to run alone (R7) find a worker that runs
// nothing: when a claim passed over one, the claimer claims nothing until the
// attempts that run have ended. That may take long, so a drain has a limit. After
// one that was too short the claimer claims for as long as it lasted, and the
// next may last twice as long: the task starts in the end, and no more than half
// of the worker's time is lost meanwhile. The zero value is ready to use.
type drainForAlone struct {
	draining bool
	until    time.Time     // the end of the drain, or the earliest start of the next one
	limit    time.Duration // of the next drain; 0: the first one's
}

// begin begins a drain, if one may begin, after a claim that passed over a task.
func (d *drainForAlone) begin(first time.Duration, now time.Time) {
	if d.draining || now.Before(d.until) {
		return
	}
	d.draining, d.limit = true, max(d.limit, first)
	d.until = now.Add(d.limit)
}

// left returns for how much longer the claimer claims nothing; 0: it claims. A
// drain ends when nothing runs any more.
func (d *drainForAlone) left(idle bool, now time.Time) time.Duration {
	switch {
	case idle:
		*d = drainForAlone{}
	case d.draining && !now.Before(d.until):
		d.draining, d.until = false, now.Add(d.limit)
		d.limit *= 2
	case d.draining:
		return d.until.Sub(now)
	}
	return 0
}
