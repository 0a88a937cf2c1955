package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// gcPercent lets the heap of a command, a few megabytes, grow further before a collection: the processes that it
	// runs need the CPU.
	gcPercent = 400

	// gcRoom is the heap size in bytes up to which gcPercent applies. A larger heap at most doubles: the peak of a
	// server must not grow fivefold.
	gcRoom = 48 << 20
)

// tuneGC sets the GC percentage after each collection.
func tuneGC() {
	debug.SetGCPercent(gcPercent)
	var mu sync.Mutex
	now := gcPercent
	var again func(*[32]byte)
	again = func(b *[32]byte) {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		mu.Lock()
		if want := percentFor(sample[0].Value.Uint64()); want != now {
			now = want
			debug.SetGCPercent(want)
		}
		mu.Unlock()
		runtime.SetFinalizer(b, again)
	}
	runtime.SetFinalizer(new([32]byte), again)
}

// percentFor returns the percentage by which a heap may grow beyond its live bytes.
func percentFor(live uint64) int {
	if live == 0 {
		return gcPercent
	}
	return int(min(gcPercent, max(100, gcRoom*100/live)))
}
