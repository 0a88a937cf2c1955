package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/memstore"
)

func TestRetain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		mail := weaver.Define[string, weaver.None]("acme.mail.retain.v1")
		client, err := weaver.NewClient(s, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ended := func() weaver.TaskID {
			h, err := mail.Enqueue(t.Context(), client, "x")
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Cancel(t.Context(), h.ID()); err != nil {
				t.Fatal(err)
			}
			return h.ID()
		}
		old := ended()
		time.Sleep(48 * time.Hour)
		young := ended()
		rules := []weaver.Retention{weaver.Retain(weaver.Forever).States(weaver.StateFailed), weaver.Retain(24 * time.Hour).Types(mail)}
		if ack, err := client.Prune(t.Context(), rules, weaver.DryRun()); err != nil || ack.Tasks != 1 {
			t.Errorf("a dry run of Prune = %+v, %v, want one task", ack, err)
		}
		eng, err := weaver.New(s, weaver.Config{Retain: rules})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- eng.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := client.Get(t.Context(), old); !errors.Is(err, weaver.ErrNotFound) {
			t.Errorf("what ended two days ago: %v, want ErrNotFound", err)
		}
		if _, err := client.Get(t.Context(), young); err != nil {
			t.Errorf("what ended just now: %v", err)
		}
	})
}

// A deleted value is not an empty result.
func TestRetainedOutput(t *testing.T) {
	t.Parallel()
	subtest(t, "says that it is gone", func(fx *fixture) {
		typ := weaver.Define[string, string]("acme.retain.output.v1")
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		h := enqueue(fx, typ, "x")
		_ = result(fx, h)
		time.Sleep(time.Hour)
		if ack, err := fx.client.Prune(fx.Context(), []weaver.Retention{weaver.Retain(0).Values()}); err != nil || ack.Dropped != 1 {
			fx.Fatalf("Prune = %+v, %v", ack, err)
		}
		if out, err := h.Wait(fx.Context()); !errors.Is(err, weaver.ErrValuesDropped) {
			fx.Errorf("Wait = %q, %v, want ErrValuesDropped", out, err)
		}
	})
}

func TestRetainMistakes(t *testing.T) {
	t.Parallel()
	_, err := weaver.New(memstore.New(), weaver.Config{Retain: []weaver.Retention{
		weaver.Retain(-time.Hour),
		weaver.Retain(0).States(weaver.StateBlocked),
		weaver.Retain(0).States(weaver.StateFailed).Values(),
		weaver.Retain(0).TypeNames("mail"),
		{},
		weaver.Retain(0).Types(),
	}})
	if !errors.Is(err, weaver.ErrConfig) {
		t.Fatalf("New = %v, want ErrConfig", err)
	}
	for _, want := range []string{"Retain[0]: an age of -1h0m0s", "Retain[1]: the state \"blocked\"", "Retain[2]: values of tasks that failed", "Retain[3]: ", "Retain[4]: an empty rule", "Retain[5]: Types() names nothing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestDeleteJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		j := weaver.NewJob("nightly", weaver.Budget{})
		j.Add("a", weaver.Define[string, weaver.None]("acme.mail.nightly.v1").With("x"))
		h, err := client.Submit(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.DeleteJob(t.Context(), h.ID()); !errors.Is(err, weaver.ErrState) {
			t.Errorf("DeleteJob of one that runs: %v, want ErrState", err)
		}
		if _, err := client.CancelJob(t.Context(), h.ID()); err != nil {
			t.Fatal(err)
		}
		if n, err := client.DeleteJob(t.Context(), h.ID(), weaver.By("ada")); err != nil || n != 1 {
			t.Errorf("DeleteJob = %d, %v", n, err)
		}
		if _, err := client.DeleteJob(t.Context(), h.ID()); !errors.Is(err, weaver.ErrNotFound) {
			t.Errorf("DeleteJob again: %v, want ErrNotFound", err)
		}
	})
}
