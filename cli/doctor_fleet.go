package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// skewTolerance is the difference between the clocks of this machine and of the store's server from which doctor warns.
const skewTolerance = time.Minute

// compareClocks warns once if the clock of the store's server, read after before, differs from this machine's. Stores
// with a clock of their own have a warning of their own.
func (f *checkup) compareClocks(s store.Store, now, before time.Time) {
	const key = "clock"
	if _, own := s.(clockAccepter); own || slices.ContainsFunc(f.Warnings, func(w warning) bool { return w.Key == key }) {
		return
	}
	by, how := before.Sub(now), "ahead of"
	if machine := time.Now(); now.After(machine) {
		by, how = now.Sub(machine), "behind"
	}
	if by < skewTolerance {
		return
	}
	f.Warnings = append(f.Warnings, warning{key, fmt.Sprintf(
		"the clock of this machine is %s %s that of the store's server: set the wrong one. Leases and delays go by the server's and nothing runs twice; a time that a program on this machine sets, such as At, is wrong by as much",
		text.Setting(by.Round(time.Second)), how)})
}

// warnOfNames warns of workers that run and have one name: in logs and lists they look like one.
func warnOfNames(workers []store.WorkerStatus, warn func(key, format string, args ...any)) {
	count := make(map[string]int)
	for i := range workers {
		if w := &workers[i]; w.Name != "" && !w.Dead && !w.Silent {
			count[w.Name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if n := count[name]; n > 1 {
			warn("workers of one name", "%d running workers have the name %s (host and process): each has its own leases, but logs and lists do not tell them apart. Give each machine or container a host name of its own",
				n, text.OneLine(name, explain.MaxNote))
		}
	}
}
