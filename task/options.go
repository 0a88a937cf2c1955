package task

// Options holds the task options that [New], [Task], [Draft], the defaults announced by workers and HTTP requests
// share by name. Stores keep them unchanged. Options must stay comparable, because stores cache the rows of equal
// options. Times and durations differ in form and have fields of their own in those types.
//
// A new field needs a row in internal/option, which holds all properties of an option.
type Options struct {
	CleanupWhenCancelled bool   `json:"cleanup_when_cancelled,omitempty"` // runs the task once more when it is cancelled while it waits
	FairBy               string `json:"fair_by,omitempty"`                // the label by whose values tasks of a queue and type take turns
	RateLimit            Rate   `json:"rate_limit,omitzero"`              // how often tasks with its key start
}
