package order

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/task"
)

// sendOp and endOp are calls that are made together with those of other sends.
type sendOp struct {
	send Send
	err  error
}

type endOp struct {
	end Settlement
	got Settled
}

func (w *Worker) commitSends(g *batch.Group[*sendOp]) {
	ops := g.Take()
	list := make([]Send, len(ops))
	for i, op := range ops {
		list[i] = op.Do.send
	}
	errs, err := w.cfg.Store.SendOrders(g.Context(), w.cfg.Namespace, list...)
	for i, op := range ops {
		if op.Err = err; err == nil {
			op.Do.err = errs[i]
		}
	}
}

func (w *Worker) commitEnds(g *batch.Group[*endOp]) {
	ops := g.Take()
	list := make([]Settlement, len(ops))
	for i, op := range ops {
		list[i] = op.Do.end
	}
	got, err := w.cfg.Store.SettleOrders(g.Context(), w.cfg.Namespace, list...)
	for i, op := range ops {
		if op.Err = err; err == nil {
			op.Do.got = got[i]
		}
	}
}

// sealedPause is the pause of a row that this worker cannot open. Another worker may have the key.
const sealedPause = 30 * time.Second

// process does the work on one claimed row.
func (w *Worker) process(ctx context.Context, h *holding) {
	r := &h.row
	ctx, end := w.cfg.Tracer.Start(ctx, SpanProcess, "outbox_id", strconv.FormatInt(r.ID, 10))
	var err error
	defer func() { end(withoutKey(err)) }()
	if task.IsSealed(r.Body) {
		w.cfg.Logger.Warn("order worker: the request is sealed with a key that this worker lacks; give it the key", logAttrs(r, w.cfg.Adapter.Name())...)
		err = w.settle(ctx, h, Settlement{Verdict: VerdictRelease, Delay: sealedPause})
		return
	}
	if !json.Valid(r.Body) {
		err = w.abort(ctx, h, ReasonValidation, false, false, "the stored request is not JSON")
		return
	}
	now := time.Now()
	over := r.Attempts >= w.cfg.Config.MaxAttempts || !r.StaleAt.IsZero() && !now.Before(r.StaleAt)
	if r.Unknown {
		done := false
		if done, err = w.askPartner(ctx, h, over); done || err != nil {
			return
		}
	}
	if over {
		err = w.giveUp(ctx, h)
		return
	}
	err = w.send(ctx, h)
}

// askPartner asks for the outcome of earlier sends, and reports whether that ended the work on the
// row. A partner that has never seen the key
// is believed once no send can be under way (absentFrom); before, the order may be sent again under its key.
func (w *Worker) askPartner(ctx context.Context, h *holding, over bool) (done bool, err error) {
	r := &h.row
	if w.rec == nil {
		return false, nil
	}
	res, found, err := w.reconcile(ctx, h)
	switch {
	case found == FoundResult:
		return true, w.succeed(ctx, h, &res)
	case found == FoundNothing && time.Now().Before(r.SendEndsAt.Add(r.Timeout)):
		return true, w.retry(ctx, h, false, true, r.LastErrorCode, "the partner does not know the key yet, and a send may be under way", r.Timeout)
	case found == FoundNothing && !time.Now().Before(absentFrom(r)):
		r.Unknown = false
		return false, nil
	case found == FoundNothing && over:
		return true, w.retry(ctx, h, false, true, r.LastErrorCode, "the partner does not know the key yet, and may still begin to execute a send", time.Until(absentFrom(r)))
	case over && err != nil && (r.StaleAt.IsZero() || time.Now().Before(r.StaleAt)):
		return true, w.retry(ctx, h, false, true, r.LastErrorCode, "the partner could not be asked: "+err.Error(), w.backoff(r.Attempts))
	}
	return false, nil
}

func (w *Worker) reconcile(ctx context.Context, h *holding) (res ExecResult, found Found, err error) {
	call, cancel := context.WithDeadline(ctx, w.endsAt(h))
	defer cancel()
	type answer struct {
		res   ExecResult
		found Found
	}
	a, err := safely("Reconcile of the adapter "+w.cfg.Adapter.Name(), func() (a answer, err error) {
		a.res, a.found, err = w.rec.Reconcile(call, h.outgoing())
		return a, err
	})
	if err != nil {
		a.found = FoundOpen
	}
	w.cfg.Metrics.Count(MetricBroker, 1, "adapter", w.cfg.Adapter.Name(), "outcome", "reconcile_"+string(a.found))
	if a.found == FoundResult {
		w.complete(h, &a.res, time.Time{}, time.Now())
		if cerr := a.res.Check(h.row.Profile); cerr != nil {
			return ExecResult{}, FoundOpen, cerr
		}
	}
	return a.res, a.found, err
}

func (h *holding) outgoing() Outgoing {
	r := &h.row
	return Outgoing{Key: r.Key, Profile: r.Profile, Body: r.Body, Ref: r.Ref, TraceID: r.TraceID, SendNo: r.SendNo + 1, CreatedAt: r.CreatedAt}
}

// endsAt returns the end of a call to the partner: its timeout, or the end of the lease validity.
func (w *Worker) endsAt(h *holding) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	ends := time.Now().Add(h.row.Timeout)
	if h.trusted.Before(ends) {
		return h.trusted
	}
	return ends
}

// giveUp aborts a row that has no attempt left, or is too old.
func (w *Worker) giveUp(ctx context.Context, h *holding) error {
	r := &h.row
	reason := ReasonCode(r.LastErrorCode)
	if !slices.Contains([]ReasonCode{ReasonTimeout, ReasonDown, ReasonInternal, ReasonRejected}, reason) {
		reason = ReasonInternal
		if r.Unknown {
			reason = ReasonTimeout // a worker died in the send
		}
	}
	message := "no attempt is left: " + r.LastErrorMsg
	var warnings []string
	if r.Attempts < w.cfg.Config.MaxAttempts {
		message = "it is older than " + r.MaxAge.String() + ": " + r.LastErrorMsg
		warnings = append(warnings, WarnExpired)
	}
	return w.abort(ctx, h, reason, false, r.Unknown, message, warnings...)
}

// send sends the request once.
func (w *Worker) send(ctx context.Context, h *holding) error {
	r := &h.row
	ends := w.endsAt(h)
	if left := time.Until(ends); left < min(r.Timeout/2, time.Second) {
		// The lease is too short for a send: it was not renewed for long.
		return w.settle(ctx, h, Settlement{Verdict: VerdictRelease})
	}
	w.mu.Lock()
	h.sent = true
	w.mu.Unlock()
	op := &sendOp{send: Send{Lease: h.lease(), EndsAt: ends}}
	if err := w.sends.Do(ctx, &batch.Op[*sendOp]{Do: op, Weight: 1}); err != nil {
		// Nothing was sent. The row may say that a send began: then its lease ends, and the
		// partner is asked, or gets the same key again.
		w.cfg.Logger.Warn("order worker: a send could not be recorded", logAttrs(r, w.cfg.Adapter.Name(), slog.Any("error", err))...)
		return err
	}
	if op.err != nil {
		return op.err
	}
	began := time.Now()
	res, failed := w.call(ctx, h, ends)
	rtt := time.Since(began)
	w.cfg.Metrics.Observe(MetricLatency, ms(rtt), "phase", "send")
	if failed == nil {
		w.complete(h, &res, began, time.Now())
		if err := res.Check(r.Profile); err != nil {
			failed = &SendError{Kind: FailUnread, Message: "the partner's result: " + err.Error()}
		}
	}
	outcome := "ok"
	if failed != nil {
		outcome = string(failed.Kind)
	}
	w.cfg.Metrics.Count(MetricBroker, 1, "adapter", w.cfg.Adapter.Name(), "outcome", outcome)
	if w.brk.note(failed != nil && failed.Kind.trips(), time.Now()) {
		signal(w.news)
		w.cfg.Logger.Warn("order worker: the circuit breaker opened", "adapter", w.cfg.Adapter.Name(), "for", w.cfg.BreakerOpen)
	}
	if failed == nil {
		return w.succeed(ctx, h, &res)
	}
	return w.failed(ctx, h, failed)
}

func (w *Worker) call(ctx context.Context, h *holding, ends time.Time) (ExecResult, *SendError) {
	call, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	call, end := w.cfg.Tracer.Start(call, SpanSend, "adapter", w.cfg.Adapter.Name())
	res, err := safely("Send of the adapter "+w.cfg.Adapter.Name(), func() (ExecResult, error) { return w.cfg.Adapter.Send(call, h.outgoing()) })
	if err == nil {
		end(nil)
		return res, nil
	}
	failed := classify(err)
	end(failed.bare())
	return res, failed
}

// complete sets the fields of a result that come from the request and the clock.
func (w *Worker) complete(h *holding, res *ExecResult, began, now time.Time) {
	complete(&h.row, w.cfg.Adapter.Name(), res, began, now)
}

func complete(r *Row, adapter string, res *ExecResult, began, now time.Time) {
	known := NoResult(r, "", now)
	res.OrderID, res.Instrument, res.Side, res.TraceID, res.IdempotencyKey = known.OrderID, known.Instrument, known.Side, known.TraceID, known.IdempotencyKey
	res.RequestedAt, res.CompletedAt = known.RequestedAt, now.UTC()
	if res.RequestedAt.After(res.CompletedAt) {
		res.RequestedAt = res.CompletedAt
	}
	if res.Broker.Name == "" {
		res.Broker.Name = adapter
	}
	res.LatencyMS.Total = now.Sub(r.CreatedAt).Milliseconds()
	if !began.IsZero() {
		res.LatencyMS.BrokerRTT = now.Sub(began).Milliseconds()
		res.LatencyMS.Queue = began.Sub(r.CreatedAt).Milliseconds()
	}
}

// failed handles a send without a result.
func (w *Worker) failed(ctx context.Context, h *holding, f *SendError) error {
	r := &h.row
	unknown := r.Unknown || f.Kind.Unknown()
	reason := f.Kind.Reason()
	switch f.Kind {
	case FailRejected:
		return w.abort(ctx, h, reason, true, false, f.Error())
	case FailThrottled:
		pause := f.RetryAfter
		if pause <= 0 {
			pause = w.backoff(r.Attempts)
		}
		w.brk.pause(pause, "the partner asks to slow down", time.Now())
		signal(w.news)
		return w.retry(ctx, h, false, unknown, string(reason), f.Error(), pause)
	case FailProcessed:
		if w.rec != nil {
			if res, found, _ := w.reconcile(ctx, h); found == FoundResult {
				return w.succeed(ctx, h, &res)
			}
		}
	}
	last := r.Attempts+1 >= w.cfg.Config.MaxAttempts
	if last && (!unknown || w.rec == nil) {
		var warnings []string
		if f.Kind == FailProcessed {
			warnings = append(warnings, WarnFillsUnknown)
		}
		return w.abort(ctx, h, reason, true, unknown, f.Error(), warnings...)
	}
	return w.retry(ctx, h, true, unknown, string(reason), f.Error(), w.backoff(r.Attempts))
}

// backoff is the pause after a number of attempts; the last one of the list repeats.
func (w *Worker) backoff(attempts int) time.Duration {
	list := w.cfg.Config.Backoff
	return list[min(attempts, len(list)-1)]
}

func (w *Worker) succeed(ctx context.Context, h *holding, res *ExecResult) error {
	return w.settle(ctx, h, Settlement{Verdict: VerdictSucceeded, Result: *res})
}

func (w *Worker) retry(ctx context.Context, h *holding, counts, unknown bool, code, message string, delay time.Duration) error {
	w.cfg.Metrics.Count(MetricRetry, 1, "attempt", strconv.Itoa(h.row.Attempts+1))
	return w.settle(ctx, h, Settlement{Verdict: VerdictRetry, Counts: counts, Unknown: unknown, Code: code, Message: message, Delay: delay})
}

// abort gives a row up. counts says that the send before it counts as an attempt.
func (w *Worker) abort(ctx context.Context, h *holding, reason ReasonCode, counts, unknown bool, message string, warnings ...string) error {
	if unknown {
		warnings = append(warnings, WarnUnknown)
	}
	res := NoResult(&h.row, reason, time.Now().UTC(), warnings...)
	res.Broker.Name = w.cfg.Adapter.Name()
	res.LatencyMS.Total = time.Since(h.row.CreatedAt).Milliseconds()
	return w.settle(ctx, h, Settlement{Verdict: VerdictAborted, Counts: counts, Result: *res, Unknown: unknown, Code: string(reason), Message: message})
}

// settle writes a verdict, and tries until the store answers. A negative one is dropped when
// the lease is lost; a positive one holds whatever the lease.
func (w *Worker) settle(ctx context.Context, h *holding, end Settlement) error {
	r := &h.row
	end.Lease, end.Digest = h.lease(), r.Digest
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		op := &endOp{end: end}
		call, cancel := ctx, context.CancelFunc(func() {})
		if end.Verdict == VerdictSucceeded { // a stop does not lose what the partner did
			call, cancel = outlive(ctx, stopLimit)
		}
		err := w.ends.Do(call, &batch.Op[*endOp]{Do: op, Weight: 1})
		cancel()
		if err == nil {
			w.cfg.Metrics.Observe(MetricLatency, ms(time.Since(began)), "phase", "commit")
			return w.settled(h, &end, &op.got)
		}
		if !sleep(ctx, wait) {
			w.cfg.Logger.Error("order worker: a result could not be stored", logAttrs(r, w.cfg.Adapter.Name(), slog.String("verdict", string(end.Verdict)), slog.Any("error", err))...)
			return err
		}
	}
}

func (w *Worker) settled(h *holding, end *Settlement, got *Settled) error {
	attrs := logAttrs(&h.row, w.cfg.Adapter.Name(), slog.String("verdict", string(end.Verdict)), slog.String("reason_code", end.Code),
		slog.Int64("latency_ms", time.Since(h.row.CreatedAt).Milliseconds()))
	outcome := string(end.Verdict)
	switch {
	case errors.Is(got.Err, ErrLeaseLost):
		outcome = "lease_lost"
		w.cfg.Logger.Info("order worker: another worker has the order; a late answer without a result was dropped", attrs...)
	case got.Err != nil:
		outcome = "alarm"
		w.cfg.Metrics.Count(MetricSettledNoRows, 1)
		w.cfg.Logger.Error("order worker: the ledger disagrees with the partner's answer", append(attrs, slog.Any("error", withoutKey(got.Err)))...)
	case end.Verdict == VerdictAborted:
		w.cfg.Logger.Warn("order aborted", append(attrs, slog.Bool("outcome_unknown", end.Unknown))...)
	default:
		w.cfg.Logger.Debug("order processed", attrs...)
	}
	w.cfg.Metrics.Count(MetricProcessed, 1, "outcome", outcome)
	return got.Err
}
