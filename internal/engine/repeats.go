package engine

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// repeatEvery is the interval at which a repeated warning is logged.
const repeatEvery = time.Minute

// maxRepeats is the number of distinguished warnings.
const maxRepeats = 100

// repeats logs warnings that a loop repeats while the store has a problem, such as a full disk. It logs the first of
// each, then one a minute with the number of omitted ones.
type repeats struct {
	mu   sync.Mutex
	seen map[string]*repeated
}

type repeated struct {
	logged time.Time
	left   int // omitted since
}

// warn logs a warning about err, with further attributes, unless the same one was logged
// within a minute.
func (r *repeats) warn(log *slog.Logger, msg string, err error, attrs ...any) {
	key, now := fmt.Sprint(msg, ": ", err), time.Now()
	r.mu.Lock()
	if len(r.seen) >= maxRepeats && r.seen[key] == nil {
		clear(r.seen)
	}
	if r.seen == nil {
		r.seen = make(map[string]*repeated)
	}
	known := r.seen[key]
	if known == nil {
		known = new(repeated)
		r.seen[key] = known
	}
	if since := now.Sub(known.logged); since >= 0 && since < repeatEvery && !known.logged.IsZero() {
		known.left++
		r.mu.Unlock()
		return
	}
	left := known.left
	*known = repeated{logged: now}
	r.mu.Unlock()
	attrs = append(attrs, "error", err)
	if left > 0 {
		attrs = append(attrs, "repeated", left)
	}
	log.Warn(msg, attrs...)
}
