package order

import (
	"sync"
	"time"
)

const (
	breakerWindow = 20          // sends that a breaker looks at
	breakerOpen   = time.Minute // default time that it stays open
)

// breaker opens when more than half of the last 20 sends timed out or found the partner down.
// While it is open, nothing is claimed. A partner that asks to slow down pauses it as well.
// sony/gobreaker counts over all requests since an interval began, or consecutive ones, and
// knows no pause: this window of 20 does not fit it.
type breaker struct {
	open time.Duration // time that it stays open

	mu     sync.Mutex
	last   [breakerWindow]bool // true: the send failed
	n, bad int
	until  time.Time
	reason string
}

// note records the outcome of a send and reports whether it opened the breaker.
func (b *breaker) note(failed bool, now time.Time) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.n % breakerWindow
	if b.n >= breakerWindow && b.last[at] {
		b.bad--
	}
	b.last[at] = failed
	b.n++
	if failed {
		b.bad++
	}
	if b.bad*2 <= breakerWindow || now.Before(b.until) {
		return false
	}
	b.n, b.bad = 0, 0
	b.until, b.reason = now.Add(b.open), "more than half of the last 20 sends timed out or found the partner down"
	return true
}

// pause keeps the adapter from sending for a time.
func (b *breaker) pause(d time.Duration, reason string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := now.Add(d); until.After(b.until) {
		b.until, b.reason = until, reason
	}
}

// state returns the announcement of the worker, without a pause that has ended.
func (b *breaker) state(adapter string, now time.Time) Sender {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Sender{Adapter: adapter, Failed: b.bad}
	if now.Before(b.until) {
		s.PausedUntil, s.Reason = b.until.Round(0), b.reason
	}
	return s
}

// wait returns the time until sends are allowed, and the reason; 0 if they are allowed now.
func (b *breaker) wait(now time.Time) (time.Duration, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.until.Sub(now); d > 0 {
		return d, b.reason
	}
	return 0, ""
}
