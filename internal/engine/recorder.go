package engine

import (
	"context"
	"time"

	"github.com/goweaver/weaver/store"
)

// recorder writes the steps and reports of attempts, several in one call. The attempts retry by themselves, because
// each may do so only as long as its own lease is valid.
type recorder struct {
	*env
	records *combiner[store.Record, store.RecordResult]
}

func newRecorder(e *env) *recorder {
	r := &recorder{env: e}
	r.records = newCombiner(r.write, func(err error) store.RecordResult { return store.RecordResult{Err: err} })
	return r
}

// record writes one record; try counts the calls for it, from 1.
func (r *recorder) record(rec store.Record, try int) store.RecordResult {
	res, err := r.records.do(rec, try)
	if err != nil {
		return store.RecordResult{Err: err}
	}
	return res
}

// write is the combiner's call.
func (r *recorder) write(recs []store.Record) ([]store.RecordResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), r.lease().Call())
	defer cancel()
	began := time.Now()
	res, err := r.Store.Record(ctx, r.Namespace, recs...)
	r.called("record", began, err)
	return res, err
}
