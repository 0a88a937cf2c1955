package store

import "time"

// SessionKeeper is implemented by stores whose workers each keep a session with the
// database: when a session has ended for longer than its worker's
// WorkerInfo.SessionGrace, others take that worker for dead, and its leases with it.
type SessionKeeper interface {
	// Session returns what this process knows of the session of a worker that joined
	// through this Store. false: the worker keeps none, and no other worker concludes
	// anything from that; this answer does not change while the worker is joined.
	//
	// It is called for every step: it asks no database and waits for nothing.
	Session(ns string, id WorkerID) (Session, bool)
}

// Session is what a worker knows of its session. Both instants have monotonic time.
//
// A worker relies on a lease until Last plus its SessionGrace at most, and on none that
// was granted or renewed by a call that began before Since.
type Session struct {
	Last  time.Time // when the last request that was answered was sent
	Since time.Time // when the session was made again after it had been silent for too long
}

// SessionOf asks a store, if it is a SessionKeeper.
func SessionOf(s Store, ns string, id WorkerID) (Session, bool) {
	if k, ok := s.(SessionKeeper); ok {
		return k.Session(ns, id)
	}
	return Session{}, false
}
