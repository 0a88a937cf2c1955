package httpapi

import "sync"

// opened counts the open requests of one long-running kind.
type opened struct {
	mu     sync.Mutex
	all    int
	byName map[string]int // by the principal's name
}

// openLimits are limits of open requests.
type openLimits struct {
	all, each int // in the process, and of one name
	problem   problemKind
	what      string
	advice    string
}

// streamLimits returns the limits of streams.
func (cfg *Config) streamLimits() openLimits {
	return openLimits{cfg.MaxStreams, cfg.MaxStreamsPerPrincipal, tooManyStreams, "streams", "Close some, or watch several topics with one."}
}

// longLimits returns the limits of waits and downloads.
func (cfg *Config) longLimits() openLimits {
	return openLimits{cfg.MaxLongRequests, cfg.MaxLongRequestsPerPrincipal, tooManyLong, "waits and downloads", "Come again when some have ended, or ask without wait."}
}

// take counts one more request, until release is called.
func (o *opened) take(l openLimits, name string) (release func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.all >= l.all:
		return nil, l.problem.of("%d %s are open here, as many as may be. %s", o.all, l.what, l.advice)
	case o.byName[name] >= l.each:
		return nil, l.problem.of("%q has %d %s open, as many as may be. %s", name, o.byName[name], l.what, l.advice)
	}
	if o.byName == nil {
		o.byName = make(map[string]int)
	}
	o.all++
	o.byName[name]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all--
		if o.byName[name]--; o.byName[name] == 0 {
			delete(o.byName, name)
		}
	}, nil
}
