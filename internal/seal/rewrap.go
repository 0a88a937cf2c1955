package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Rewrapped is what a bite of a rewrap did.
type Rewrapped struct {
	Values int    // that are sealed with the newest key now
	Blobs  int    // the same, in the bucket
	Plain  int    // blobs that were put before the codec was on: they stay as they are
	Failed int    // values and blobs that could not be opened: they stay as they are
	Why    error  // of the first of them
	Next   string // where to go on; "": all was looked at
}

// Rewrap seals a page of stored values with the newest key. blob does it for one blob
// of the bucket, and reports whether there was something to do.
//
// A value is opened and sealed outside of any transaction, and replaced if it is still
// what was read: a program that changed it meanwhile sealed it itself. Crash here: the
// same page is looked at once more, and what is done is passed over.
func (s *Sealer) Rewrap(ctx context.Context, below store.Data, after string, limit int, blob func(context.Context, task.Blob) (bool, error)) (res Rewrapped, err error) {
	res.Values, res.Next, err = below.RewriteValues(ctx, s.Namespace, after, limit, func(values []store.StoredValue) (swaps []store.ValueSwap, err error) {
		for i := range values {
			v := &values[i]
			var renewed json.RawMessage
			var changed bool
			var err error
			if b, isBlob := task.BlobOf(v.Value); v.Kind == store.ValueBlob && isBlob {
				if !IsBlob(b) {
					res.Plain++
					continue
				}
				changed, err = blob(ctx, b)
				if changed && err == nil {
					res.Blobs++
				}
			} else if renewed, changed, err = s.renew(v); changed && err == nil {
				swaps = append(swaps, store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: renewed})
			}
			switch {
			case err == nil:
			case !Lasting(err) && !errors.Is(err, errDamaged): // a key service, a bucket, a context
				return nil, err
			default:
				if res.Failed++; res.Why == nil {
					res.Why = err
				}
			}
		}
		return swaps, nil
	})
	return res, err
}

// errDamaged: a blob is missing, or not what was put.
var errDamaged = errors.New("the bucket does not have it")

// Damaged says of an error of a blob that it is not passing.
func Damaged(err error) error { return fmt.Errorf("%w: %w", errDamaged, err) }

// renew returns what a row is to have of a value.
func (s *Sealer) renew(v *store.StoredValue) (renewed json.RawMessage, changed bool, err error) {
	p := Place{Task: v.Task}
	switch v.Kind {
	case store.ValueInput, store.ValueDraft:
		p = InputOf(v.Task, v.Of)
	case store.ValueOutput, store.ValueJoinOutput:
		p.Kind = Output
	case store.ValueUnblock:
		p.Kind = Unblock
	case store.ValueStep:
		step := &task.Step{Name: v.Name, Kind: v.StepKind, Signal: v.Of}
		if !holdsValue(step) && step.Kind != task.KindSignal {
			return nil, false, nil
		}
		p = StepOf(v.Task, step)
	case store.ValueSignal:
		p = SignalOf(v.Task, v.Of)
	case store.ValueCheckpoint:
		p.Kind, p.Name = Checkpoint, v.Name
	case store.ValueEvent:
		p.Kind, p.Name = Event, v.Of
	case store.ValueLog:
		p.Kind, p.Name = Log, v.Of
	case store.ValueLink:
		p = LinkOf(v.Task, v.Of)
	case store.ValueProgress:
		return s.renewProgress(v)
	default:
		return nil, false, fmt.Errorf("a value of the kind %q is not known: a newer program wrote it: %w", v.Kind, codec.ErrChanged)
	}
	return s.Renew(p, v.Value)
}

// renewProgress renews the message of a report.
func (s *Sealer) renewProgress(v *store.StoredValue) (json.RawMessage, bool, error) {
	var p task.Progress
	if err := json.Unmarshal(v.Value, &p); err != nil || p.Message == "" {
		return nil, false, nil // nothing of it is sealed
	}
	message := json.RawMessage(p.Message)
	if !task.IsSealed(message) {
		sealed, err := s.progress(v.Task, &p)
		if err != nil {
			return nil, false, err
		}
		p = *sealed
	} else {
		renewed, changed, err := s.Renew(Place{Task: v.Task, Kind: Progress}, message)
		if err != nil || !changed {
			return nil, false, err
		}
		p.Message = string(renewed)
	}
	report, err := json.Marshal(&p)
	return report, err == nil, err
}
