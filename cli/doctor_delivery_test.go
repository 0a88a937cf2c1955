package cli

import (
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// Doctor counts the hints that the transport refused or did not take, and asks the transport.
func TestDoctor_WarnsOfHints(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	mail := weaver.Define[int, int]("acme.hints.mail.v1")
	for i := range 4 {
		if _, err := mail.Enqueue(t.Context(), client, i); err != nil {
			t.Fatal(err)
		}
	}
	got, err := st.Publish(t.Context(), client.Namespace(), store.PublishRequest{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]store.Pushed, 3)
	for i, text := range []string{store.HintRefused + "the name is too long", "connection refused", ""} {
		outcomes[i] = store.Pushed{Task: got.Tasks[i].Task, Mark: got.Mark, For: time.Hour, Error: text}
	}
	if _, err := st.Publish(t.Context(), client.Namespace(), store.PublishRequest{Pushed: outcomes}); err != nil {
		t.Fatal(err)
	}
	closed := delivery.NewMemory()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	var f checkup
	if err := f.examine(t.Context(), st, client.Namespace()); err != nil {
		t.Fatal(err)
	}
	f.examineDelivery(t.Context(), &session{hints: &hints{Transport: closed}})
	want := []warning{
		{"delivery", "the transport of --delivery cannot be used, and idle workers start tasks later: the delivery transport is closed"},
		{"refused hints", `the transport refuses the hints of 1 task, which idle workers start later; one of them: queue "default", type acme.hints.mail.v1: the name is too long`},
		{"failed hints", "the transport did not take the hints of 1 task at the last try: connection refused"},
	}
	for i := range want {
		if i >= len(f.Warnings) || f.Warnings[i] != want[i] {
			t.Fatalf("the warnings are %q, want %q", f.Warnings, want)
		}
	}
	if !f.Clean || *f.Delivery.Answers || f.Delivery.Refused != 1 || f.Delivery.Failed != 1 {
		t.Errorf("%+v, clean: %v", f.Delivery, f.Clean)
	}
	f = checkup{}
	if f.examineDelivery(t.Context(), &session{hints: &hints{Transport: delivery.NewMemory()}}); len(f.Warnings) > 0 || !*f.Delivery.Answers {
		t.Errorf("a transport that answers: %q, %+v", f.Warnings, f.Delivery)
	}
}
