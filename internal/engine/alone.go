package engine

import "time"

// drainForAlone makes room for a task that must run alone (R7). When a claim skipped such a task, the claimer stops
// claiming until all running attempts have ended. Attempts may run for long, so a drain has a time limit. After a
// drain that was too short, the claimer claims for as long as the drain lasted, and the next drain may last twice as
// long. The task therefore starts eventually, and the worker loses at most half of its time meanwhile. The zero value
// is ready to use.
type drainForAlone struct {
	draining bool
	until    time.Time     // the end of the drain, or the earliest start of the next one
	limit    time.Duration // of the next drain; 0: the first one's
}

// begin starts a drain, if allowed, after a claim that skipped a task.
func (d *drainForAlone) begin(first time.Duration, now time.Time) {
	if d.draining || now.Before(d.until) {
		return
	}
	d.draining, d.limit = true, max(d.limit, first)
	d.until = now.Add(d.limit)
}

// left returns the remaining time of the drain; 0: the claimer may claim. A drain ends when no attempt is running.
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
