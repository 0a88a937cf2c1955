package event

import "github.com/goweaver/weaver/internal/jsonnumber"

// kinds lists every event type.
var kinds = []struct {
	zero   Event
	feed   bool                                // feeds include it
	decode func(Header, []byte) (Event, error) // decodes a row; nil: stores do not keep the type
}{
	{zero: TaskEnqueued{}, feed: true},
	{zero: TaskStarted{}, feed: true},
	{zero: TaskSucceeded{}, feed: true},
	{zero: TaskFailed{}, feed: true},
	{zero: TaskRetrying{}, feed: true},
	{zero: TaskSuspended{}, feed: true},
	{zero: TaskUndoing{}, feed: true},
	{zero: TaskBlocked{}, feed: true},
	{zero: TaskCancelled{}, feed: true},
	{zero: TaskReleased{}, feed: true},
	{zero: TaskLeaseLost{}, feed: true},
	{zero: TaskReopened{}, feed: true},
	{zero: StepStarted{}, feed: true, decode: row(func(e *StepStarted, h Header) { e.Header = h })},
	{zero: StepCompleted{}, feed: true, decode: row(func(e *StepCompleted, h Header) { e.Header = h })},
	{zero: StepFailed{}, feed: true, decode: row(func(e *StepFailed, h Header) { e.Header = h })},
	{zero: Progress{}, feed: true, decode: row(func(e *Progress, h Header) { e.Header = h })},
	{zero: StreamChunk{}, feed: true, decode: row(func(e *StreamChunk, h Header) { e.Header, e.Data = h, jsonnumber.Plain(e.Data) })},
	{zero: LogWritten{}, feed: true, decode: row(func(e *LogWritten, h Header) { e.Header = h; jsonnumber.PlainMap(e.Data) })},
	{zero: JobSettled{}, feed: true},
	{zero: JobStarted{}}, // this and the next two: of `weaver run` only
	{zero: JobBlocked{}},
	{zero: JobFinished{}},
}

// row returns the decoder of a type that stores keep.
func row[E Event](head func(*E, Header)) func(Header, []byte) (Event, error) {
	return func(h Header, body []byte) (Event, error) {
		var ev E
		err := jsonnumber.Unmarshal(body, &ev)
		head(&ev, h)
		return ev, err
	}
}

// FeedTypes returns the types of the events in a feed (weaver.Client.Events).
func FeedTypes() (types []string) {
	for i := range kinds {
		if kinds[i].feed {
			types = append(types, kinds[i].zero.Type())
		}
	}
	return types
}
