package store

import "time"

// Session is what a worker knows of its session. Both instants have monotonic time.
//
// A worker relies on a lease until Last plus its SessionGrace at most, and on none that
// was granted or renewed by a call that began before Since.
type Session struct {
	Last  time.Time // when the last request that was answered was sent
	Since time.Time // when the session was made again after it had been silent for too long
}
