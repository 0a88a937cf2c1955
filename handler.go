package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/option"
)

// HandlerFunc is an untyped handler, as Middleware sees it: encoded input to encoded output or an
// error.
type HandlerFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Handler is the code of one task type, returned by Type.Handler.
type Handler struct {
	name    string
	variant string // its name among the handlers of the type
	queue   string // default queue of the type
	run     HandlerFunc
	version int
	schema  int // newest schema version that it reads
	repair  *repairer
	problem string // reported by New
	redact  []string
	expires bool // fields of the input have a limited retention
	of      AnyType
	draft   func(input json.RawMessage, opts ...EnqueueOption) Draft
}

// Name returns the name of the handler's task type.
func (h Handler) Name() string { return h.name }

// Variant returns the handler's name among those of the type (HandlerName), "" for the default one,
// which runs tasks unless a Router chooses another.
func (h Handler) Variant() string { return h.variant }

// Queue returns the queue of the handler's task type, in which its tasks wait unless an enqueue sets
// another.
func (h Handler) Queue() string { return h.queue }

// Draft makes a draft of the handler's task type from encoded input; see Type.WithJSON. It is for
// programs that have handlers but not their types, such as a command line.
func (h Handler) Draft(input json.RawMessage, opts ...EnqueueOption) Draft {
	if h.draft == nil {
		return Draft{err: fmt.Errorf("%w: the handler is empty: make handlers with a task type's Handler", ErrInvalidInput)}
	}
	return h.draft(input, opts...)
}

// CheckInput returns why Draft would refuse an encoded input: ErrInvalidInput. It does not check the
// input of an older schema version.
func (h Handler) CheckInput(input json.RawMessage, schemaVersion int) error {
	if schemaVersion != h.schema {
		return nil
	}
	return h.Draft(input).Err()
}

// HandlerOption is an option of Type.Handler.
type HandlerOption interface{ applyHandler(*handlerSettings) }

type handlerSettings struct {
	name     string
	version  int
	verify   any // func(context.Context, Out) error
	upcasts  map[int]upcast
	repair   repairFunc
	problems []error
}

type handlerOption func(*handlerSettings)

func (o handlerOption) applyHandler(s *handlerSettings) { o(s) }

// HandlerName names a handler, so that a task type may have several. The unnamed handler runs its
// tasks unless Config.Router chooses another one. The attempt records the name of its handler.
func HandlerName(name string) HandlerOption {
	return handlerOption(func(s *handlerSettings) {
		if err := option.CheckKey("HandlerName", name); err != nil {
			s.problems = append(s.problems, err)
		}
		s.name = name
	})
}

// CodeVersion numbers the handler's code; it is stored with each attempt, and
// the first attempt's version stays readable (Current().StartedVersion).
// Default 1.
func CodeVersion(v int) HandlerOption {
	return handlerOption(func(s *handlerSettings) { s.version = v })
}

// VerifySuccess checks the output of a handler that returned no error. Its error makes the attempt a
// failure, which is decided like any other. For a success after the attempt's timeout, deadline or
// cancel, ctx is a new context of 30 s.
func VerifySuccess[Out any](ok func(ctx context.Context, out Out) error) HandlerOption {
	return handlerOption(func(s *handlerSettings) { s.verify = ok })
}

// Handler binds a function to the task type. The function may run more than once for a task; put
// effects that must not repeat into a Step. Its context ends when the task is cancelled, times out, or
// loses its lease; context.Cause returns the reason.
func (t *Type[In, Out]) Handler(fn func(ctx context.Context, in In) (Out, error), opts ...HandlerOption) Handler {
	h, set := t.handler(t, fn == nil, opts)
	if h.problem != "" {
		return h
	}
	var verify func(context.Context, Out) error
	if set.verify != nil {
		var ok bool
		if verify, ok = set.verify.(func(context.Context, Out) error); !ok {
			h.problem = fmt.Sprintf("VerifySuccess of %s is a %T, want a func(context.Context, %T) error", t.name, set.verify, *new(Out))
			return h
		}
	}
	h.run = func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		var in In
		if err := t.decodeInput(ctx, input, set.upcasts, &in); err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil && !completes(err) {
			return nil, err
		}
		if Suspended(context.Cause(ctx)) {
			return nil, ErrSuspended // the value of a suspended attempt is ignored
		}
		if verify != nil {
			if err := verifyLate(ctx, out, verify); err != nil {
				return nil, fmt.Errorf("verify the output: %w", err)
			}
		}
		raw, bad := encodeOutput("output", &out)
		if bad != nil {
			return nil, bad
		}
		return raw, err
	}
	return h
}

// lateVerify is the time limit of VerifySuccess for a late success.
const lateVerify = 30 * time.Second

// verifyLate calls verify, with a new context if a timeout, deadline or cancel ended the given one.
func verifyLate[Out any](ctx context.Context, out Out, verify func(context.Context, Out) error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrDeadline) || errors.Is(cause, ErrCancelled) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), lateVerify)
		defer stop()
	}
	return verify(ctx, out)
}

// handler makes a handler without its function, and returns its options.
func (t *contract) handler(of AnyType, isNil bool, opts []HandlerOption) (Handler, *handlerSettings) {
	set := &handlerSettings{version: 1}
	for _, o := range opts {
		if o != nil {
			o.applyHandler(set)
		}
	}
	n := &t.set.Task
	h := Handler{
		name: t.name, variant: set.name, queue: n.Queue, version: set.version, schema: n.SchemaVersion,
		of: of, draft: t.WithJSON, redact: n.Redact, expires: len(n.Expire) > 0,
	}
	set.checkUpcasts(h.schema)
	switch h.problem = set.problem(t.name); {
	case h.problem != "":
	case isNil:
		h.problem = fmt.Sprintf("the handler of %s is nil", t.name)
	case set.version < 1:
		h.problem = fmt.Sprintf("CodeVersion(%d) of %s: want at least 1", set.version, t.name)
	case set.repair != nil:
		h.repair = t.repairer(set.repair)
	}
	return h, set
}
