package schema_test

import (
	"context"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/memstore"
)

var (
	charge = weaver.Define[base, bool]("acme.billing.charge.v1", weaver.SchemaVersion(2), weaver.Queue("billing"))
	mail   = weaver.Define[string, weaver.None]("acme.mail.send.v1")
)

func handled(context.Context, base) (bool, error) { return true, nil }

func TestAnnounce(t *testing.T) {
	t.Parallel()
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := schema.Announce(t.Context(), c, charge, nil, mail); err != nil {
			t.Fatal(err)
		}
	}
	types, err := c.Types(t.Context())
	if err != nil || len(types) != 2 || types[0].Name != charge.Name() || types[0].SchemaVersion != 2 || types[0].Defaults.Queue != "billing" {
		t.Fatalf("Types = %+v, %v", types, err)
	}
	s, err := schema.Compile(types[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"id":"x"}`)); err == nil {
		t.Error("the announced schema accepts another input")
	}
}

// An engine with the plug-in announces the types that it handles; of several handlers of a type it uses the unnamed
// one.
func TestPlugin(t *testing.T) {
	t.Parallel()
	named := charge.Handler(handled, weaver.HandlerName("fast"), weaver.CodeVersion(8))
	eng, err := weaver.New(memstore.New(), weaver.Config{
		Handlers: []weaver.Handler{named, charge.Handler(handled, weaver.CodeVersion(3))},
		Plugins:  []weaver.Plugin{schema.Plugin()},
		Lease:    time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	types, err := eng.Types(t.Context())
	if err != nil || len(types) != 1 || types[0].CodeVersion != 3 || len(types[0].Input) == 0 || len(types[0].Output) == 0 {
		t.Errorf("Types = %+v, %v", types, err)
	}
}
