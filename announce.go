package weaver

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Description describes tasks of a type for people and for programs that list task types; at most 4
// KiB.
func Description(text string) TypeOption {
	return typeOption(func(s *option.Settings) {
		if err := task.CheckText("Description", text); err != nil {
			s.Errs = append(s.Errs, err)
			return
		}
		if len(text) > store.MaxTypeText {
			s.Problem("Description: it has %d bytes, want at most %d", len(text), store.MaxTypeText)
		}
		s.Description = text
	})
}

type typeOption func(*option.Settings)

func (o typeOption) ApplyType(s *option.Settings) { o(s) }

// Info returns the definition: name, schema version and task options. Package schema adds the JSON
// Schemas.
func (t *contract) Info() store.AnnouncedType {
	n := &t.set.Task
	info := store.AnnouncedType{
		Name: t.name, SchemaVersion: n.SchemaVersion, Description: t.set.Description,
		Redact: slices.Clone(n.Redact), Expire: slices.Clone(n.Expire),
	}
	option.Copy(&info.Defaults, n)
	return info
}

// Payloads returns the Go types of input and output.
func (t *contract) Payloads() (in, out reflect.Type) { return t.in, t.out }

// Type returns the handler's task type, whose Info has the handler's code version; nil if the handler
// is empty.
func (h Handler) Type() AnyType {
	if h.of == nil {
		return nil
	}
	return handledType{h.of, h.version}
}

// handledType is a type with the version of a handler.
type handledType struct {
	AnyType
	version int
}

// Info implements AnyType.
func (t handledType) Info() store.AnnouncedType {
	info := t.AnyType.Info()
	info.CodeVersion = t.version
	return info
}

// Handlers returns the handlers that the engine was made with.
func (e *Engine) Handlers() []Handler { return slices.Clone(e.handlers) }

// maxAnnounced is the maximum number of types in one command.
const maxAnnounced = 20

// AnnounceTypes stores descriptions of task types for programs without their Go types; package schema
// does it with their JSON Schemas. An unchanged description has no effect, and a description with a
// newer schema version is kept. Errors: invalid types, store.ErrLimit.
func (c *Client) AnnounceTypes(ctx context.Context, types ...store.AnnouncedType) error {
	by := announcer()
	for some := range slices.Chunk(types, maxAnnounced) {
		got, err := c.store.Operate(ctx, c.ns, store.AnnounceTypes{By: by, Types: some})
		if err != nil {
			return fmt.Errorf("announce task types: %w", err)
		}
		if got[0].Err != nil {
			return got[0].Err
		}
	}
	return nil
}

// announcer returns the name under which this process announces types.
func announcer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Types returns the announced task types with these names, or all of them if names is empty, by name.
// Unknown names are left out.
func (c *Client) Types(ctx context.Context, names ...string) ([]store.AnnouncedType, error) {
	if err := checkTexts("the name of a type", names...); err != nil {
		return nil, fmt.Errorf("read the announced task types: %w", err)
	}
	types, err := c.store.Types(ctx, c.ns, names...)
	if err != nil {
		return nil, fmt.Errorf("read the announced task types: %w", err)
	}
	return types, nil
}
