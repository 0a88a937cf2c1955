package opfs

import (
	"syscall/js"
	"time"
)

// turnEvery is the maximum time for which transactions keep JavaScript from handling its events: messages of pages,
// timers and answers of the network. Go returns to JavaScript only when all goroutines wait.
const turnEvery = 10 * time.Millisecond

// turn is made when the program starts, so that tests in a synctest bubble can wait for it.
var turn struct {
	last time.Time
	port js.Value      // undefined where there are no channels
	over chan struct{} // has an element for each message that arrived
}

func init() {
	channels := js.Global().Get("MessageChannel")
	if channels.IsUndefined() {
		return
	}
	turn.over = make(chan struct{}, 1024) // more than there are connections
	channel := channels.New()
	channel.Get("port2").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
		turn.over <- struct{}{}
		return nil
	}))
	turn.port = channel.Get("port1")
}

// giveTurn lets JavaScript handle its events if the last time is turnEvery ago. The caller writes, so that all other
// writers wait for it, and the goroutines come to a rest soon.
func giveTurn() {
	if turn.port.IsUndefined() || time.Since(turn.last) < turnEvery {
		return
	}
	turn.last = time.Now()
	turn.port.Call("postMessage", 0)
	<-turn.over
	turn.last = time.Now()
}
