package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
)

func TestDraftOf_ReportsMistakes(t *testing.T) {
	t.Parallel()
	of := weaver.Define[int, int]("acme.test.announced.v1").Info()
	for want, d := range map[string]weaver.Draft{
		"Priority(12)":        schema.DraftOf(of, json.RawMessage(`{}`), weaver.Priority(12)),
		"MaxAttempts(-1)":     schema.DraftOf(store.AnnouncedType{Name: of.Name, Defaults: store.TypeDefaults{MaxAttempts: -1}}, json.RawMessage(`{}`)),
		"an option is nil":    schema.DraftOf(of, json.RawMessage(`{}`), nil),
		"acme.test.announced": schema.DraftOf(of, json.RawMessage(`{`)),
		"owner.domain":        schema.DraftOf(store.AnnouncedType{Name: "Charge"}, json.RawMessage(`{}`)),
	} {
		if err := d.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not say %q", err, want)
		}
	}
	if err := schema.DraftOf(store.AnnouncedType{Name: of.Name}, json.RawMessage(`{}`)).Err(); err != nil {
		t.Errorf("a type of which nothing but the name is known: %v", err)
	}
}
