package wire

import (
	"errors"
	"fmt"
)

// Problem is a response without success, as in RFC 9457. It is also the error that the
// client's methods return for one.
type Problem struct {
	Type   string         `json:"type"`             // stable: ProblemBase and the name of the problem
	Title  string         `json:"title"`            // the same for all problems of one type
	Status int            `json:"status"`           // of the response
	Detail string         `json:"detail,omitempty"` // the fault in this case, and the remedy
	Errors []ProblemError `json:"errors,omitempty"` // the mistakes in the request
	Checks []HealthCheck  `json:"checks,omitempty"` // of readyz

	// Headers of the answer.
	RetryAfter int    `json:"-"` // seconds; 0: none
	Allow      string `json:"-"`
	Challenge  string `json:"-"` // of a 401; "" is that of tokens
}

// HealthCheck is the result of one readiness check.
type HealthCheck struct {
	Name   string `json:"name"`
	Status string `json:"status"`           // ok, failed, or degraded: the process is ready without it
	Detail string `json:"detail,omitempty"` // the reason, unless ok
}

// ProblemError is one mistake in a request.
type ProblemError struct {
	Pointer   string `json:"pointer,omitempty"`   // JSON pointer (RFC 6901) into the body, after a #
	Parameter string `json:"parameter,omitempty"` // of the path, the query or the headers
	Column    int    `json:"column,omitempty"`    // in the parameter's value, from 1
	Detail    string `json:"detail"`

	Meant string   `json:"meant,omitempty"` // the word that was probably meant
	Words []string `json:"words,omitempty"` // the words that are valid there
}

// ProblemBase begins the types of problems; docs/problems.md has a section for each.
const ProblemBase = "https://github.com/goweaver/weaver/blob/main/docs/problems.md#"

// Error implements error.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	for _, e := range p.Errors {
		at := e.Pointer
		if at == "" {
			at = e.Parameter
		}
		text += fmt.Sprintf("; %s: %s", at, e.Detail)
	}
	return text
}

// Is makes errors.Is of a problem that came over HTTP say what it says of the error
// that the problem was made of.
func (p *Problem) Is(target error) bool {
	sentinel := p.Sentinel()
	return sentinel != nil && errors.Is(sentinel, target)
}

// Sentinel returns the error that the problem's type stands for; nil for a problem of
// HTTP alone.
func (p *Problem) Sentinel() error {
	if p.Type == ProblemBase+Precondition.Name {
		return Precondition.Sentinel
	}
	for _, k := range kinds {
		if p.Type == ProblemBase+k.Name {
			return k.Sentinel
		}
	}
	return nil
}
