package pgtest

// A call is a function that runs in a goroutine outside of every bubble of
// testing/synctest. A process that is awaited inside of one stops its time.
type call struct {
	do   chan func()
	done chan struct{}
}

// offers has a call for whoever wants one. Its channels belong to no bubble.
var offers = make(chan call)

func init() {
	go func() {
		for {
			c := call{make(chan func()), make(chan struct{})}
			offers <- c
			go func() {
				defer close(c.done)
				(<-c.do)()
			}()
		}
	}()
}

// outside runs f outside of the bubble of its caller, if that has one, and
// waits for it.
func outside(f func()) {
	c := <-offers
	c.do <- f
	<-c.done
}
