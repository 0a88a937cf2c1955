package wire

// LimitDraft is a limit to set. What is left out is not limited.
type LimitDraft struct {
	VerbRequest
	Starts  int  `json:"starts,omitempty"`  // how many tasks start in each period, evenly spaced
	Per     Span `json:"per,omitempty"`     // the period of starts
	Burst   int  `json:"burst,omitempty"`   // how many of them may start at once after a pause; default 1
	Running int  `json:"running,omitempty"` // how many tasks run at once
	Pending int  `json:"pending,omitempty"` // of a queue: how many tasks wait to start; further enqueues are refused
	Weight  int  `json:"weight,omitempty"`  // of a label's value: how many of its tasks start in each turn; default 1
}
