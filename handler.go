package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/option"
)

// HandlerFunc is a handler below its types, as Middleware sees it: the encoded
// input in, the encoded output or the error out.
type HandlerFunc func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Handler is the code of one task type, made by Type.Handler.
type Handler struct {
	name    string
	variant string // its own name among the handlers of the type
	queue   string // of the type: where its tasks wait unless an enqueue says otherwise
	run     HandlerFunc
	version int
	schema  int // the newest schema version of the inputs that it reads
	repair  *repairer
	problem string // reported by New
	redact  []string
	expires bool // fields of the input are stored for a time
	of      AnyType
	draft   func(input json.RawMessage, opts ...EnqueueOption) Draft
}

// Name returns the name of the handler's task type.
func (h Handler) Name() string { return h.name }

// Variant returns its own name among the handlers of the type (HandlerName), "" for the
// one that runs tasks unless a Router chooses another one.
func (h Handler) Variant() string { return h.variant }

// Queue returns the queue of the handler's task type: where its tasks wait
// unless an enqueue says otherwise.
func (h Handler) Queue() string { return h.queue }

// Draft makes a draft of the handler's task type from encoded input; see
// Type.WithJSON. It is for programs that have handlers and not their types, such
// as a command line.
func (h Handler) Draft(input json.RawMessage, opts ...EnqueueOption) Draft {
	if h.draft == nil {
		return Draft{err: fmt.Errorf("%w: the handler is empty: make handlers with a task type's Handler", ErrInvalidInput)}
	}
	return h.draft(input, opts...)
}

// CheckInput says why an encoded input is none of the handler's task type, as
// Draft does: ErrInvalidInput. The input of an older schema version is not checked.
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

// HandlerName names a handler, so that a task type may have several: one without a
// name, which runs its tasks unless Config.Router chooses another one, and others.
// The name of the one that ran is kept with the attempt.
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

// VerifySuccess checks the output of a handler that returned no error; its
// error makes the attempt a failure, which is then decided like any other. For a success
// that came after the attempt's timeout, deadline or cancel, ctx is one of 30 s of its own.
func VerifySuccess[Out any](ok func(ctx context.Context, out Out) error) HandlerOption {
	return handlerOption(func(s *handlerSettings) { s.verify = ok })
}

// Handler binds a function to the task type. The function may run more than
// once for a task; what must not be repeated goes into Step. Its context ends
// when the task is cancelled, times out, or its lease is lost; context.Cause
// says which.
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
			return nil, ErrSuspended // the value of a suspended attempt means nothing
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

// lateVerify is the time that VerifySuccess has for a success that came late.
const lateVerify = 30 * time.Second

// verifyLate calls verify; a context that a timeout, deadline or cancel ended is replaced.
func verifyLate[Out any](ctx context.Context, out Out, verify func(context.Context, Out) error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, ErrDeadline) || errors.Is(cause, ErrCancelled) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), lateVerify)
		defer stop()
	}
	return verify(ctx, out)
}

// handler makes a handler that does not run yet, and returns its options.
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
