package wire

// PauseRequest is the pause of a queue or task type.
type PauseRequest struct {
	VerbRequest
	Force bool `json:"force,omitempty"` // although there is nothing of the name yet
}
