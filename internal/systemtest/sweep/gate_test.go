package sweep_test

// gate is a lock whose waiters let the bubble's clock advance. With a mutex they would not, and a holder that sleeps
// would never wake up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// pass waits for the gate and returns the function that opens it for the next waiter.
func (g gate) pass() (leave func()) {
	g <- struct{}{}
	return func() { <-g }
}
