package pgtest

// A call is a function that runs in a goroutine outside of every bubble of testing/synctest.
// Waiting for a process inside of a bubble stops the bubble's time.
type call struct {
	do   chan func()
	done chan struct{}
}

// offers provides calls. Its channels belong to no bubble.
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

// outside runs f outside of its caller's bubble, if there is one, and waits for it.
func outside(f func()) {
	c := <-offers
	c.do <- f
	<-c.done
}
