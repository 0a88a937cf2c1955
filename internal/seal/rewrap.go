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

// Rewrapped is the result of one page of a rewrap.
type Rewrapped struct {
	Values int    // values sealed again with the newest key
	Blobs  int    // blobs sealed again, in the bucket
	Plain  int    // blobs put before the codec was on; unchanged
	Failed int    // values and blobs that could not be opened; unchanged
	Why    error  // the first of these errors
	Next   string // the cursor of the next page; "" at the end
}

// Rewrap seals a page of stored values with the newest key. blob does so for one blob of the
// bucket, and reports whether it changed.
//
// A value is opened and sealed outside of any transaction, and replaced only if it has not
// changed: a program that changed it meanwhile has sealed it itself.
// Crash here: the same page is read again, and finished values are skipped.
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
			case !Lasting(err) && !errors.Is(err, errDamaged): // a temporary error of a key service, a bucket or a context
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

// errDamaged means that a blob is missing or has changed.
var errDamaged = errors.New("the bucket does not have it")

// Damaged marks an error of a blob as permanent.
func Damaged(err error) error { return fmt.Errorf("%w: %w", errDamaged, err) }

// renew returns the new stored form of a value.
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
	case store.ValueOrderRequest:
		p = OrderRequestOf(v.Name)
	case store.ValueOrderResult:
		p = OrderResultOf(v.Name)
	case store.ValueSchedule:
		p = ScheduleOf(v.Name)
	case store.ValueProgress:
		return s.renewProgress(v)
	default:
		return nil, false, fmt.Errorf("a value of the kind %q is not known: a newer program wrote it: %w", v.Kind, codec.ErrChanged)
	}
	return s.Renew(p, v.Value)
}

// renewProgress renews the sealed message of a report.
func (s *Sealer) renewProgress(v *store.StoredValue) (json.RawMessage, bool, error) {
	var p task.Progress
	if err := json.Unmarshal(v.Value, &p); err != nil || p.Message == "" {
		return nil, false, nil // the report has no sealed part
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
