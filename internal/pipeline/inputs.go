package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver"
)

const (
	// maxInput is what a store takes as the input of a task, without the
	// longest path of a directory that JobOptions may add.
	maxInput = weaver.DefaultInlineLimit - 4<<10
	// maxShared is what all tasks together may have from the pipeline.
	maxShared = 32 << 20
)

// checkInputs looks at the inputs as they will be stored, with what they have
// from the pipeline, once everything else is right.
func (l *taskList) checkInputs(tasks entry) {
	if len(l.r.all) > 0 {
		return
	}
	p := l.p
	shared := len(p.Dir)
	for _, texts := range []map[string]string{p.Env, p.Labels} {
		for k, v := range texts {
			shared += len(k) + len(v)
		}
	}
	for _, name := range p.InheritEnv {
		shared += len(name)
	}
	if shared*len(p.Tasks) > maxShared {
		l.r.add(tasks.at, fmt.Sprintf("env, labels and dir of the pipeline are %d bytes, and each of %d tasks would have a copy", shared, len(p.Tasks)), "keep long texts in files of their own")
		return
	}
	for i := range p.Tasks {
		// Without problems there is one task for each entry.
		e, d := tasks.value.entries[i], p.definition(&p.Tasks[i], string(filepath.Separator))
		var input any = d.Input
		switch {
		case d.Run != nil:
			input = d.Run
			l.validate(e, "task "+quote(d.Name), input)
		case d.Request != nil:
			input = d.Request
		}
		raw, err := json.Marshal(input)
		switch {
		case err != nil:
			l.r.add(e.at, fmt.Sprintf("task %s cannot be stored: %v", quote(d.Name), err), "")
		case len(raw) > maxInput:
			l.r.add(e.at, fmt.Sprintf("task %s is %d bytes long as it would be stored, and at most %d are allowed", quote(d.Name), len(raw), maxInput), "keep long texts in files of their own")
		}
	}
}

// validate asks the input itself, and looks for the key that each complaint
// begins with.
func (l *taskList) validate(e entry, where string, input any) {
	v, ok := input.(interface{ Validate() error })
	if !ok {
		return
	}
	err := v.Validate()
	if err == nil {
		return
	}
	all := []error{err}
	if joined := (interface{ Unwrap() []error })(nil); errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for _, err := range all {
		message, hint := err.Error(), ""
		for _, word := range []string{"write ", "leave ", "keep ", "use "} {
			if before, after, found := strings.Cut(message, ": "+word); found {
				message, hint = before, word+after
			}
		}
		at := e.at
		first, _, _ := strings.Cut(message, " ")
		if key, ok := e.value.get(strings.TrimRight(first, ":")); ok {
			at = key.spot()
		}
		l.r.add(at, where+": "+message, hint)
	}
}
