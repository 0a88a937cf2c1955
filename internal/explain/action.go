package explain

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Verb is the effect of an action on its target.
type Verb string

// Verbs of actions.
const (
	VerbCancel     Verb = "cancel"     // ArgForce, ArgAbandonUndo
	VerbRepair     Verb = "repair"     // needs an input
	VerbRerun      Verb = "rerun"      // ArgFrom
	VerbReschedule Verb = "reschedule" // sets the due time to now
	VerbResume     Verb = "resume"
	VerbRetry      Verb = "retry"   // ArgAddAttempts, ArgAddCost, ArgKeepSteps, ArgCleanup
	VerbRun        Verb = "run"     // start a worker that takes over the task; only the command line can
	VerbSignal     Verb = "signal"  // ArgName; needs a payload
	VerbUnblock    Verb = "unblock" // ArgAsk
	VerbWhy        Verb = "why"     // explain another task
)

// TargetKind is the kind of an action's target.
type TargetKind string

// Kinds of targets.
const (
	TargetTask  TargetKind = "task"
	TargetJob   TargetKind = "job"
	TargetQueue TargetKind = "queue"
	TargetType  TargetKind = "type"
)

// Target identifies the object of an action: the ID of a task or job, or the name of a queue or task type.
type Target struct {
	Kind TargetKind `json:"kind"`
	ID   string     `json:"id"`
}

// Args holds the arguments of a verb. Its zero value means no arguments.
type Args struct {
	Force       bool   `json:"force,omitempty"`
	Ask         string `json:"ask,omitempty"`  // the question to answer
	From        string `json:"from,omitempty"` // step name
	Name        string `json:"name,omitempty"` // signal name
	AddAttempts int64  `json:"add_attempts,omitempty"`
	AddCost     int64  `json:"add_cost,omitempty"` // micro-units
	KeepSteps   bool   `json:"keep_steps,omitempty"`
	Cleanup     bool   `json:"cleanup,omitempty"` // retry only the undo
	AbandonUndo bool   `json:"abandon_undo,omitempty"`
}

// Action is a step that an operator can take for a task or job. Each interface renders it in its own way: the CLI as
// command arguments, the HTTP API as a request, the web page as a button.
type Action struct {
	Verb       Verb   `json:"verb"`
	Target     Target `json:"target"`
	NeedsInput bool   `json:"needs_input,omitempty"` // requires a JSON value from the operator
	Args       Args   `json:"args,omitzero"`

	Command string `json:"command"` // complete command line
	Effect  string `json:"effect"`
}

// on returns an action on a task.
func on(t task.ID, verb Verb, effect string) Action {
	return Action{Verb: verb, Target: Target{TargetTask, t.String()}, Effect: effect}
}

func (a Action) with(args Args) Action {
	a.Args = args
	return a
}

func (a Action) needsInput() Action {
	a.NeedsInput = true
	return a
}

// shown returns the action with its command line.
func (e *Explainer) shown(a Action) Action {
	if args := a.CLI(); args != nil {
		a.Command = e.Command(args...)
	}
	return a
}

// CLI returns the command arguments of the action, or nil if only Command can express it.
func (a Action) CLI() []string {
	id := a.Target.ID
	switch a.Verb {
	case VerbRun:
		return nil
	case VerbWhy:
		return []string{"why", id}
	case VerbResume:
		switch a.Target.Kind {
		case TargetQueue:
			return append([]string{"queue", "resume"}, plain(id)...)
		case TargetType:
			return []string{"queue", "resume", "--type", id}
		}
	case VerbSignal:
		return append([]string{"task", "signal", id}, append(plain(a.Args.Name), "JSON")...)
	case VerbRepair:
		return []string{"task", "repair", id, "--input", "FILE"}
	case VerbRerun:
		if a.Args.From == "" {
			return []string{"task", "rerun", id}
		}
		return append([]string{"task", "rerun", id}, flag("--from", a.Args.From)...)
	}
	args := []string{string(a.Target.Kind), string(a.Verb)}
	if a.Target.Kind == TargetJob { // flags come last
		args = append(args, id)
	}
	if a.Verb == VerbReschedule {
		args = append(args, "--now")
	}
	if a.Args.Force {
		args = append(args, "--force")
	}
	if a.Args.Ask != "" {
		args = append(args, flag("--ask", a.Args.Ask)...)
	}
	if n := a.Args.AddAttempts; n != 0 {
		args = append(args, "--add-attempts", strconv.FormatInt(n, 10))
	}
	if n := a.Args.AddCost; n != 0 {
		args = append(args, "--add-cost", strconv.FormatInt(n, 10))
	}
	if a.Args.KeepSteps {
		args = append(args, "--keep-steps")
	}
	if a.Args.Cleanup {
		args = append(args, "--cleanup")
	}
	if a.Args.AbandonUndo {
		args = append(args, "--abandon-undo")
	}
	if a.Target.Kind != TargetJob {
		args = append(args, id)
	}
	return args
}

// plain returns the words for an argument, which may look like a flag.
func plain(value string) []string {
	if strings.HasPrefix(value, "-") {
		return []string{"--", value}
	}
	return []string{value}
}

// flag returns the words for a flag, whose value may itself look like a flag.
func flag(name, value string) []string {
	if strings.HasPrefix(value, "-") {
		return []string{name + "=" + value}
	}
	return []string{name, value}
}

// HTTP returns the request for the action, relative to the API root; Args is its body. It returns "", "" for an
// action that a server cannot perform.
func (a Action) HTTP() (method, path string) {
	base := map[TargetKind]string{TargetTask: "/v1/tasks/", TargetJob: "/v1/jobs/", TargetQueue: "/v1/queues/", TargetType: "/v1/types/"}[a.Target.Kind] + url.PathEscape(a.Target.ID) + "/"
	switch a.Verb {
	case VerbRun:
		return "", ""
	case VerbWhy:
		return "GET", base + "why"
	}
	return "POST", base + string(a.Verb)
}

// InputName returns the body field for the operator's value, or "" if the action takes no value.
func (a Action) InputName() string {
	switch {
	case !a.NeedsInput:
		return ""
	case a.Verb == VerbSignal:
		return "payload"
	}
	return "input"
}
