package event

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// FeedRequest says which events a reader wants: those that fit all that it names.
type FeedRequest struct {
	After string // the cursor of the last event that the reader has; "": what happens from now on; FeedOldest: all that is kept

	Task  task.ID
	Job   task.ID  // its own events, and those of its tasks
	Queue string   // of tasks
	Types []string // of tasks, any of them; "acme.billing.*" is all that begin so
	Names []string // of events, any of them: "task.failed", "step.*"; one that no event has is ErrInvalidOption

	Limit int           // of FeedPage; 0: 500, which is the most
	Wait  time.Duration // of EventPage: for so long, if nothing is there; 0: it answers at once
}

// FeedEvent is an event with its cursor, or a gap.
type FeedEvent struct {
	Cursor  string   // a reader that resumes behind it gets what comes next
	Event   Event    // nil for a gap
	Queue   string   // of the task
	Problem string   // why the event lacks what it said: that was sealed with another key, is erased, has changed since, or was deleted
	Gap     *FeedGap // nil for an event
}

// FeedGap says that events are not kept any more, or were not while none were kept:
// what lay behind the cursor From, up to To, which a reader never gets.
type FeedGap struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// FeedPage is a page of events, as weaver.Client.EventPage reads it.
type FeedPage struct {
	Events []FeedEvent
	Next   string // the cursor for the next page; beyond the last event if what follows was looked at and does not fit
	Newest string // the cursor of the newest event of all
	More   bool   // there is more already
}

// FeedOldest is the cursor of a reader that wants all events that are still kept.
const FeedOldest = "0"
