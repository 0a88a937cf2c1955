package httpapi

import (
	"sync"
	"time"
)

const (
	maxFailures  = 10          // wrong credentials in a minute
	failuresKept = 10_000      // keys kept
	failuresLast = time.Minute // counted from the first failure of a key
)

// failures counts wrong credentials in a minute, by address, account or both.
type failures struct {
	mu   sync.Mutex
	from map[string]failed // by key
}

type failed struct {
	n     int
	since time.Time
}

func newFailures() *failures { return &failures{from: make(map[string]failed)} }

// take counts a failure and reports whether the count is within the limit.
func (f *failures) take(key string) bool { return f.add(key, maxFailures) }

// add counts a failure, unless the count has reached most.
func (f *failures) add(key string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, known := f.from[key]
	if time.Since(of.since) >= failuresLast {
		of = failed{since: time.Now()}
	}
	if of.n >= most {
		return false
	}
	for other := range f.from { // any of them: the count only needs a bound
		if known || len(f.from) < failuresKept {
			break
		}
		delete(f.from, other)
	}
	of.n++
	f.from[key] = of
	return true
}

// giveBack subtracts a failure that take counted.
func (f *failures) giveBack(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.from[key]; of.n > 1 {
		of.n--
		f.from[key] = of
	} else {
		delete(f.from, key)
	}
}

// count returns the number of failures within the minute.
func (f *failures) count(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.from[key]
	if time.Since(of.since) >= failuresLast {
		return 0
	}
	return of.n
}

// over reports whether the limit is reached.
func (f *failures) over(key string) bool { return f.count(key) >= maxFailures }

func waitAMinute() *Problem { return tooManyFailures.of("Wait a minute, and look at the credentials.") }
