package builtin_test

import (
	"context"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/task"
)

// A short outage of the store costs a task with one attempt nothing.
func TestTemplatesOutlastAnOutage(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Needs", "Tasks"} {
		webCase(t, method, func(w *webFixture) {
			var v visits
			w.serve("a.test", v.serve)
			j := weaver.NewJob("chain")
			get := j.Add("get", builtin.Request.With(builtin.RequestInput{URL: "http://a.test/"}, weaver.MaxAttempts(1)))
			j.Add("post", builtin.Request.With(builtin.RequestInput{URL: "http://a.test/{{.tasks.get.status}}", Body: "x", Templates: true}, weaver.MaxAttempts(1)), weaver.Needs(get))
			store := faultstore.New(w.env.DB(), faultstore.At(method, 1, faultstore.ErrorBefore))
			e, err := weaver.New(store.Store(), w.cfg)
			if err != nil {
				w.Fatal(err)
			}
			ctx, stop := context.WithCancel(w.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx) }()
			h, err := e.Submit(ctx, j)
			if err != nil {
				w.Fatal(err)
			}
			res, err := h.Wait(ctx)
			if err != nil || res.State != task.JobSucceeded || v.last(w).path != "/200" || len(store.Struck()) != 1 {
				w.Errorf("%+v, %v", res, err)
			}
			stop()
			if err := <-done; err != nil {
				w.Error(err)
			}
		})
	}
}
