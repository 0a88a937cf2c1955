package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// types caches the announced task types, which validate the drafts of other programs.
type types struct {
	client *weaver.Client
	turns  *checkTurns

	mu    sync.Mutex
	known map[string]*knownType
}

type knownType struct {
	store.AnnouncedType
	input *inputSchema
	read  time.Time
}

const (
	typeFresh  = 5 * time.Second // lifetime of a cached type
	typesKnown = 10_000          // limit of cached types
)

// find returns an announced type, or nil if the name was not announced.
func (t *types) find(ctx context.Context, name string) (*knownType, error) {
	t.mu.Lock()
	k := t.known[name]
	t.mu.Unlock()
	if k != nil && time.Since(k.read) < typeFresh {
		return k, nil
	}
	list, err := t.client.Types(ctx, name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	found := &knownType{AnnouncedType: list[0], read: time.Now()}
	compiled, err := schema.Compile(found.Input)
	if err != nil {
		return nil, fmt.Errorf("the task type %s was announced with an input schema that cannot be used: %w", name, err)
	}
	found.input = &inputSchema{compiled, name, t.turns}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= typesKnown {
		t.known = make(map[string]*knownType)
	}
	t.known[name] = found
	return found, nil
}

// announced is find for a required type; pointer is the place in the body that requires it.
func (t *types) announced(ctx context.Context, name, pointer string) (*knownType, error) {
	typ, err := t.find(ctx, name)
	if err == nil && typ == nil {
		p := unknownType.of("No worker has announced the task type %s in the namespace %q: start one that handles it, and announces it (schema.Plugin), then send this again.", name, t.client.Namespace())
		p.Errors = []ProblemError{{Pointer: "#" + pointer, Detail: "it was not announced"}}
		return nil, p
	}
	return typ, err
}

// check rejects an input that the type's schema does not permit.
func (k *knownType) check(ctx context.Context, input json.RawMessage, pointer string) error {
	err := k.input.Validate(ctx, input)
	wrong, is := errors.AsType[*schema.Error](err)
	if !is {
		return err
	}
	p := invalidInput.of("The schema of %s does not allow the input: /v1/types/%s has it.", k.Name, k.Name)
	for _, m := range wrong.Problems {
		p.Errors = append(p.Errors, ProblemError{Pointer: "#" + pointer + m.Pointer, Detail: m.Detail})
	}
	return p
}

// newInput checks an input that replaces a task's input.
func (t *types) newInput(ctx context.Context, id task.ID, input json.RawMessage) error {
	old, err := taskRow(ctx, t.client, id)
	if err != nil {
		return err
	}
	typ, err := t.announced(ctx, old.Type, "/input")
	if err != nil {
		return err
	}
	if of := old.SchemaVersion; of != typ.SchemaVersion {
		return bodyProblem(invalidBody, "/input", fmt.Sprintf("the task's inputs are of schema version %d, and %s was announced with %d, whose schema does not apply here: enqueue a new task, or use an engine that has the handler", of, typ.Name, typ.SchemaVersion))
	}
	var stored bytes.Buffer // a repair stores it without spaces: check the stored form
	if json.Compact(&stored, input) == nil {
		input = stored.Bytes()
	}
	return typ.check(ctx, input, "/input")
}

// draft returns the draft of a task of an announced type whose schema permits the input. pointer is
// its place in the body.
func (t *types) draft(ctx context.Context, d *Draft, pointer string) (weaver.Draft, error) {
	typ, err := t.announced(ctx, d.Type, pointer+"/task_type")
	if err != nil {
		return weaver.Draft{}, err
	}
	if d.SchemaVersion != 0 && d.SchemaVersion != typ.SchemaVersion {
		return weaver.Draft{}, bodyProblem(invalidBody, pointer+"/schema_version", fmt.Sprintf("it is %d, and %s was announced with %d", d.SchemaVersion, d.Type, typ.SchemaVersion))
	}
	if err := typ.check(ctx, d.Input, pointer+"/input"); err != nil {
		return weaver.Draft{}, err
	}
	if err := t.client.CheckInput(d.Type, typ.SchemaVersion, d.Input); err != nil { // for a type that this process runs
		p := invalidInput.of("The type %s does not take the input.", d.Type)
		p.Errors = []ProblemError{{Pointer: "#" + pointer + "/input", Detail: err.Error()}}
		return weaver.Draft{}, p
	}
	info := typ.AnnouncedType
	if err := hide(d, &info, pointer); err != nil {
		return weaver.Draft{}, err
	}
	if d.Exact {
		info.Defaults = store.TypeDefaults{}
	}
	return schema.DraftOf(info, d.Input, givenOptions(&d.DraftOptions)...), nil
}

const (
	mostHidden = 100 // patterns of a draft
	maxPattern = 255 // bytes of one pattern
)

// hide adds the draft's rules for values to those of the type.
func hide(d *Draft, info *store.AnnouncedType, pointer string) error {
	check := func(at, pattern string) error {
		if pattern == "" || len(pattern) > maxPattern || !utf8.ValidString(pattern) || strings.ContainsRune(pattern, 0) {
			return bodyProblem(invalidBody, at, fmt.Sprintf("want a path like input/card/number, of at most %d bytes", maxPattern))
		}
		return nil
	}
	if len(d.Redact) > mostHidden || len(d.Expire) > mostHidden {
		return bodyProblem(invalidBody, pointer, fmt.Sprintf("redact and expire have more than %d paths", mostHidden))
	}
	info.Redact, info.Expire = slices.Clone(info.Redact), slices.Clone(info.Expire)
	for i, p := range d.Redact {
		if err := check(fmt.Sprintf("%s/redact/%d", pointer, i), p); err != nil {
			return err
		}
		if !slices.Contains(info.Redact, p) {
			info.Redact = append(info.Redact, p)
		}
	}
	for i, e := range d.Expire {
		at := fmt.Sprintf("%s/expire/%d", pointer, i)
		if err := check(at+"/path", e.Path); err != nil {
			return err
		}
		if e.After <= 0 {
			return bodyProblem(invalidBody, at+"/after", "want a positive duration like 720h")
		}
		if x := (task.Expiry{Path: e.Path, After: time.Duration(e.After)}); !slices.Contains(info.Expire, x) {
			info.Expire = append(info.Expire, x)
		}
	}
	return nil
}
