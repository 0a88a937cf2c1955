package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// gcPercent lets the heap of a command, a few megabytes, grow further before it is
	// collected: the processes that it runs need the CPU.
	gcPercent = 400

	// gcRoom is the size up to which that holds. A larger heap doubles at most: what a
	// server holds for a moment must not become five times as much.
	gcRoom = 48 << 20
)

// tuneGC sets the percentage behind each collection.
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
