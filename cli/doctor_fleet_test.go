package cli

import (
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

func TestDoctor_WarnsOfClocks(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration]string{
		10 * time.Minute:  "the clock of this machine is 10m behind that of the store's server: set the wrong one. Leases and delays go by the server's and nothing runs twice; a time that a program on this machine sets, such as At, is wrong by as much",
		-10 * time.Minute: "the clock of this machine is 10m ahead of that of the store's server: set the wrong one. Leases and delays go by the server's and nothing runs twice; a time that a program on this machine sets, such as At, is wrong by as much",
		5 * time.Second:   "",
	} {
		st := memstore.New()
		st.ShiftClock(by)
		var f checkup
		if err := f.examine(t.Context(), st, "default"); err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(f.Warnings) > 0 {
			got = f.Warnings[0].Text
		}
		if got != want || len(f.Warnings) > 1 {
			t.Errorf("a server %s ahead: %q, want %q", by, f.Warnings, want)
		}
	}
}

func TestDoctor_WarnsOfWorkersOfOneName(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range map[store.WorkerID]string{"a": "app:1", "b": "app:1", "c": "other:1"} {
		if err := st.Join(t.Context(), client.Namespace(), store.WorkerInfo{ID: id, Name: name, TTL: time.Minute, Types: []string{"acme.t.v1"}}); err != nil {
			t.Fatal(err)
		}
	}
	var f checkup
	if err := f.examineOverview(t.Context(), &session{}, client); err != nil {
		t.Fatal(err)
	}
	want := warning{"workers of one name", "2 running workers have the name app:1 (host and process): each has its own leases, but logs and lists do not tell them apart. Give each machine or container a host name of its own"}
	if len(f.Warnings) != 1 || f.Warnings[0] != want {
		t.Errorf("the warnings are %q, want %q", f.Warnings, want)
	}
}
