package opfs

import (
	"sync"
	"syscall/js"
	"time"
)

// turnEvery is the maximum time for which transactions keep JavaScript from handling its events: messages of pages,
// timers and answers of the network. Go returns to JavaScript only when all goroutines wait.
const turnEvery = 10 * time.Millisecond

var turn struct {
	once sync.Once
	last time.Time
	port js.Value
	over chan struct{}
}

// giveTurn lets JavaScript handle its events if the last time is turnEvery ago. The caller writes, so that all other
// writers wait for it, and the goroutines come to a rest soon.
func giveTurn() {
	if time.Since(turn.last) < turnEvery {
		return
	}
	turn.once.Do(func() {
		turn.over = make(chan struct{}, 1024) // more than there are connections
		channel := js.Global().Get("MessageChannel").New()
		channel.Get("port2").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
			turn.over <- struct{}{}
			return nil
		}))
		turn.port = channel.Get("port1")
	})
	turn.last = time.Now()
	turn.port.Call("postMessage", 0)
	<-turn.over
	turn.last = time.Now()
}
