package event

import "github.com/goweaver/weaver/internal/jsonnumber"

// kinds has a line for each type of event.
var kinds = []struct {
	zero   Event
	feed   bool                                // feeds tell of it
	decode func(Header, []byte) (Event, error) // of a row; nil: stores keep none
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
	{zero: JobStarted{}}, // of `weaver run` alone, like the next two
	{zero: JobBlocked{}},
	{zero: JobFinished{}},
}

// row returns the decoder of a type whose events stores keep.
func row[E Event](head func(*E, Header)) func(Header, []byte) (Event, error) {
	return func(h Header, body []byte) (Event, error) {
		var ev E
		err := jsonnumber.Unmarshal(body, &ev)
		head(&ev, h)
		return ev, err
	}
}

// FeedTypes returns the types that the events of a feed have (weaver.Client.Events).
func FeedTypes() (types []string) {
	for i := range kinds {
		if kinds[i].feed {
			types = append(types, kinds[i].zero.Type())
		}
	}
	return types
}
