package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// DefaultPublishHold is the default of PublishRequest.Hold.
const DefaultPublishHold = 2 * time.Second

// PublishRequest reports pushed hints and asks for tasks whose hints are to be sent.
type PublishRequest struct {
	Pushed []Pushed      // outcomes of pushes, recorded first
	Limit  int           // maximum number of tasks; 0: no task
	Hold   time.Duration // time for which the answered tasks are marked as sent; 0: DefaultPublishHold
}

// PublishResult is the answer to a PublishRequest.
type PublishResult struct {
	Tasks []UnsentTask  // in claim order
	Mark  time.Time     // identifies the marking in Pushed; zero without tasks
	Next  time.Duration // time until more hints are to be sent; 0: at once, < 0: unknown. Not set without a Limit
}

// UnsentTask is a due task whose hint is to be sent.
type UnsentTask struct {
	Task        task.ID
	Queue, Type string
	Attempts    int // pushes of its hint, including the coming one
}

// HintRefused begins the error of a hint that the transport refused for good.
const HintRefused = "refused: "

// Pushed is the outcome of a push of one hint.
type Pushed struct {
	Task  task.ID
	Mark  time.Time     // PublishResult.Mark
	For   time.Duration // the hint is not sent again for this time
	Error string        // error of the transport; "": it took the hint. HintRefused and a reason: it never will
}
