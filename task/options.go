package task

// Options are the options of a task that [New], [Task], [Draft], the defaults that workers
// announce and requests over HTTP all have by the same name, and that stores keep as they
// are. It must stay comparable: stores remember the rows of equal options. Times and
// durations, whose form differs from one to the other, have fields of their own there.
//
// A new field needs its row in internal/option, where all that is said of an option stands.
type Options struct {
	CleanupWhenCancelled bool `json:"cleanup_when_cancelled,omitempty"` // it runs once more when it is cancelled while it waits
}
