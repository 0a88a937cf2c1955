package event_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// A Sink that prints events as lines of JSON, as `weaver worker -o json` does.
func ExampleEncoder() {
	var mu sync.Mutex
	var enc event.Encoder
	sink := event.SinkFunc(func(ev event.Event) {
		ev = event.Plain(ev) // runs code of the handler, so before the lock
		mu.Lock()
		defer mu.Unlock()
		for _, line := range enc.Lines(ev) {
			fmt.Println(line)
		}
	})

	h := event.Header{At: time.Unix(0, 0).UTC(), Namespace: "default", TaskID: task.ID{15: 1}, TaskType: "acme.mail.send.v1", AttemptNo: 1}
	sink.Emit(event.TaskStarted{Header: h})
	sink.Emit(event.StreamChunk{Header: h, Stream: "stdout", Data: "caf\xc3"}) // half a character
	sink.Emit(event.StreamChunk{Header: h, Stream: "stdout", Data: "\xa9"})
	sink.Emit(event.TaskSucceeded{Header: h, Duration: time.Second})
	// Output:
	// {"event":"task.started","timestamp":"1970-01-01T00:00:00Z","namespace":"default","task_id":"00000000000000000000000001","task_type":"acme.mail.send.v1","attempt_no":1}
	// {"event":"stream.chunk","timestamp":"1970-01-01T00:00:00Z","namespace":"default","task_id":"00000000000000000000000001","task_type":"acme.mail.send.v1","attempt_no":1,"stream":"stdout","data":"caf"}
	// {"event":"stream.chunk","timestamp":"1970-01-01T00:00:00Z","namespace":"default","task_id":"00000000000000000000000001","task_type":"acme.mail.send.v1","attempt_no":1,"stream":"stdout","data":"é"}
	// {"event":"task.succeeded","timestamp":"1970-01-01T00:00:00Z","namespace":"default","task_id":"00000000000000000000000001","task_type":"acme.mail.send.v1","attempt_no":1,"duration_ns":1000000000}
}
