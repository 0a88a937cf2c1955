package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
)

const (
	// maxInput is the maximum size of a task's input, in bytes. It leaves room for the
	// longest directory path that JobOptions may add.
	maxInput = weaver.DefaultInlineLimit - 4<<10
	// maxShared is the maximum total size, in bytes, of the copies of shared settings
	// in tasks.
	maxShared = 32 << 20
)

// checkInputs checks the inputs as the store will hold them, with the shared
// settings of the pipeline. The file must have no other mistakes.
func (d *decoder) checkInputs(tasks field) {
	p := d.p
	shared := len(p.Dir) + len(p.EnvFile)
	for _, texts := range []map[string]string{p.Env, p.Labels} {
		for k, v := range texts {
			shared += len(k) + len(v)
		}
	}
	for _, name := range slices.Concat(p.InheritEnv, p.SecretEnv) {
		shared += len(name)
	}
	if shared*len(p.Tasks) > maxShared {
		d.r.add(tasks.at, fmt.Sprintf("env, labels and dir of the pipeline are %d bytes, and each of %d tasks would have a copy", shared, len(p.Tasks)), "keep long texts in files of their own")
		return
	}
	for i := range p.Tasks {
		if p.Tasks[i].from != nil {
			continue // checked in its file
		}
		if i > 0 && d.r.failed() && p.Tasks[i].Group != "" && p.Tasks[i].Group == p.Tasks[i-1].Group {
			continue // report one node of a task only
		}
		e, def := d.entries[i], p.definition(&p.Tasks[i], string(filepath.Separator))
		of := "task " + quote(p.Tasks[i].Name)
		var input any = def.Input
		switch {
		case def.ForeachFrom != "":
			input = def.foreach()
			d.checkForeach(e, of, def)
		case def.Run != nil:
			input = def.Run
			if !(def.Run.Templates && d.lacksParam()) {
				d.validate(e, of, def.Run)
			}
		case def.Request != nil:
			input = def.Request
		case def.Approve != nil:
			input = def.Approve
		default:
			d.checkType(e, of, def)
		}
		raw, err := json.Marshal(input)
		switch {
		case err != nil:
			d.r.add(e.at, fmt.Sprintf("%s cannot be stored: %v", of, err), "")
		case len(raw) > maxInput:
			d.r.add(e.at, fmt.Sprintf("%s is %d bytes long as it would be stored, and at most %d are allowed", of, len(raw), maxInput), "keep long texts in files of their own")
		}
	}
}

// checkType requires a known task type, where types must be known, and an input
// that the type accepts.
func (d *decoder) checkType(e entry, of string, def definition) {
	at := func(key string) spot {
		if found, ok := e.value.get(key); ok {
			return found.spot()
		}
		return e.at
	}
	h, known := d.given.Types.Known[def.Type]
	if !known {
		if d.given.Types.Unknown == nil {
			return
		}
		if problem, hint := d.given.Types.Unknown(def.Type); problem != "" {
			d.r.add(at("type"), fmt.Sprintf("%s is of type %s, %s", of, def.Type, problem), hint)
		}
		return
	}
	if err := h.Draft(def.Input).Err(); err != nil {
		where := at("type")
		if _, given := e.value.get("input"); given {
			where = at("input")
		}
		d.r.add(where, of+": "+err.Error(), "")
	}
}

// validate reports the errors of an input, each at the key that begins its
// message.
func (d *decoder) validate(e entry, of string, input interface{ Validate() error }) {
	err := input.Validate()
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
		d.r.add(at, of+": "+message, hint)
	}
}
