package task

// UnknownFields says what becomes of fields of a stored input that its Go type lacks.
type UnknownFields int

// The settings of weaver.Config.UnknownFields.
const (
	UnknownWarn   UnknownFields = iota // the input is decoded without them; logged once per type, and noted with the attempt, which `weaver why` shows
	UnknownRefuse                      // the input does not decode: the task is repaired (Repair) or blocked
	UnknownIgnore                      // the input is decoded without them
)
