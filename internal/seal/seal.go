// Package seal puts a codec between Weaver and its store: it seals values on their way to the
// store and opens them on the way back.
//
// A sealed value is bound to its namespace, its place (Place) and the task for which it was
// sealed, whose ID is stored with it. Values that a store copies to other tasks (the steps of
// a repeated task, a coalesced input) keep that ID. For all other values a reader requires the
// ID of the task that it reads.
//
// A value that cannot be opened stays in its place, without its bytes and with the reason
// (task.Sealed.Why), so that it does not prevent other reads. Failure returns the reason as an
// error.
package seal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/task"
)

// Sealer seals and opens the values of one namespace.
type Sealer struct {
	Codec     codec.Codec
	Namespace string
}

// Place identifies a value.
type Place struct {
	Task task.ID // the task with the value
	Kind Kind
	Name string // of the task's type, the step, the signal, the checkpoint or the artifact
	Any  bool   // the value may be sealed for another task
}

// Kind is a kind of values.
type Kind string

// The kinds of values. The payload of a signal becomes the value of the step that waits for
// it, so both have the kind signal.
const (
	Input      Kind = "input"
	Output     Kind = "output"
	Unblock    Kind = "unblock"
	Step       Kind = "step"
	Signal     Kind = "signal"
	Checkpoint Kind = "checkpoint"
	Progress   Kind = "progress"
	Event      Kind = "event"
	Log        Kind = "log"
	Link       Kind = "link"
	Schedule   Kind = "schedule"
)

// InputOf returns the place of a task's input.
func InputOf(id task.ID, taskType string) Place {
	return Place{Task: id, Kind: Input, Name: taskType, Any: true}
}

// StepOf returns the place of a step's value.
func StepOf(id task.ID, s *task.Step) Place {
	if s.Kind == task.KindSignal {
		return SignalOf(id, s.Signal)
	}
	return Place{Task: id, Kind: Step, Name: s.Name, Any: true}
}

// SignalOf returns the place of a signal's payload.
func SignalOf(id task.ID, name string) Place {
	return Place{Task: id, Kind: Signal, Name: name, Any: true}
}

// LinkOf returns the place of an artifact's link.
func LinkOf(id task.ID, name string) Place {
	return Place{Task: id, Kind: Link, Name: name, Any: true}
}

// ScheduleOf returns the place of what a schedule enqueues.
func ScheduleOf(name string) Place { return Place{Kind: Schedule, Name: name, Any: true} }

// bound returns the data to which a codec binds a value.
func (s *Sealer) bound(p *Place, of task.ID) []byte {
	b := make([]byte, 0, 64+len(s.Namespace)+len(p.Kind)+len(p.Name))
	b = append(append(b, "weaver value v1\x00"...), s.Namespace...)
	b = append(append(b, 0), p.Kind...)
	b = append(append(b, 0), of[:]...)
	return append(append(b, 0), p.Name...)
}

// Seal returns the stored form of a value. A blob does not change: its bytes are sealed in the
// bucket. A missing value stays missing.
func (s *Sealer) Seal(p Place, value json.RawMessage) (json.RawMessage, error) {
	if _, large := task.BlobOf(value); large || len(value) == 0 {
		return value, nil
	}
	if err := Failure(value); err != nil {
		return nil, fmt.Errorf("a value that could not be opened cannot be stored: %w", err)
	}
	if !json.Valid(value) { // the store cannot check sealed bytes
		return nil, fmt.Errorf("the %s of task %s %w", p.Kind, p.Task, errNotJSON)
	}
	sealed, err := s.Codec.Seal(value, s.bound(&p, p.Task))
	if err == nil {
		err = codec.CheckKeyID(sealed.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("seal the %s of task %s: %w", p.Kind, p.Task, err)
	}
	return (&task.Sealed{Key: sealed.Key, Of: p.Task, Size: len(value), Bytes: sealed.Bytes}).Value(), nil
}

var errNotJSON = errors.New("is not JSON")

// Open returns the value of a stored form. An unsealed value is returned unchanged. A value
// that cannot be opened is returned without its bytes and with the reason.
func (s *Sealer) Open(p Place, value json.RawMessage) json.RawMessage {
	if !task.IsSealed(value) {
		return value
	}
	kept, plain, err := s.open(&p, value)
	if err != nil {
		kept.Bytes, kept.Why = nil, reason(err)
		return kept.Value()
	}
	return plain
}

func (s *Sealer) open(p *Place, value json.RawMessage) (task.Sealed, json.RawMessage, error) {
	kept, ok := task.SealedOf(value)
	if !ok || !p.Any && kept.Of != p.Task {
		return kept, nil, codec.ErrChanged
	}
	plain, err := s.Codec.Open(codec.Sealed{Key: kept.Key, Bytes: kept.Bytes}, s.bound(p, kept.Of))
	if err == nil && !json.Valid(plain) {
		err = codec.ErrChanged // an authenticating codec does not return such a value
	}
	return kept, plain, err
}

// Renew returns a value sealed with the newest key, and whether it was sealed with another key
// or not sealed.
func (s *Sealer) Renew(p Place, value json.RawMessage) (renewed json.RawMessage, changed bool, err error) {
	if _, large := task.BlobOf(value); large || len(value) == 0 {
		return value, false, nil
	}
	if !task.IsSealed(value) {
		renewed, err = s.Seal(p, value)
		return renewed, err == nil, err
	}
	kept, ok := task.SealedOf(value)
	if ok && kept.Key == s.Codec.Newest() {
		return value, false, nil
	}
	kept, plain, err := s.open(&p, value)
	if err != nil {
		return nil, false, fmt.Errorf("open the %s of task %s, sealed with the key %q: %w", p.Kind, p.Task, kept.Key, err)
	}
	p.Task = kept.Of
	renewed, err = s.Seal(p, plain)
	return renewed, err == nil, err
}

// reasons are the errors with a short stored form.
var reasons = map[string]error{"no key": codec.ErrNoKey, "changed": codec.ErrChanged}

func reason(err error) string {
	for short, of := range reasons {
		if errors.Is(err, of) {
			return short
		}
	}
	return err.Error()
}

// Failure returns the reason for which a value is still sealed after a read; nil if it is not
// sealed.
func Failure(value json.RawMessage) error {
	if !task.IsSealed(value) {
		return nil
	}
	kept, ok := task.SealedOf(value)
	why, known := reasons[kept.Why]
	switch {
	case !ok:
		why = codec.ErrChanged
	case kept.Why == "":
		why = codec.ErrNoCodec
	case !known:
		why = errors.New(kept.Why)
	}
	return fmt.Errorf("sealed with the key %q, %d bytes: %w", kept.Key, kept.Size, why)
}

// Lasting reports whether an error is permanent: a retry would not read the value.
func Lasting(err error) bool {
	return errors.Is(err, codec.ErrNoCodec) || errors.Is(err, codec.ErrNoKey) || errors.Is(err, codec.ErrChanged)
}
