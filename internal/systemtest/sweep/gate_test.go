package sweep_test

// gate is a lock whose waiters let the bubble's clock go on. With a mutex they
// would not, and a holder that sleeps would never wake up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// pass waits for the gate, and returns what opens it for the next one.
func (g gate) pass() (leave func()) {
	g <- struct{}{}
	return func() { <-g }
}
