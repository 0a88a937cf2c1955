package store

import "time"

// Session is the state of a worker's database session. Both instants have monotonic time.
//
// A worker relies on a lease until Last plus its SessionGrace at most, and never on a lease granted or
// renewed by a call that began before Since.
type Session struct {
	Last  time.Time // send time of the last answered request
	Since time.Time // time at which the session was re-established after too long a silence
}
