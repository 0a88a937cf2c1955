package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	chargeType = "acme.billing.charge.v1"
	mailType   = "acme.mail.send.v1"
)

// charge returns a type with every announced property.
func charge() store.AnnouncedType {
	return store.AnnouncedType{
		Name: chargeType, SchemaVersion: 2, CodeVersion: 3, Description: "Takes the money.\nOnce.",
		Input:  json.RawMessage(`{"type":"object","properties":{"b":{"maximum":9007199254740993,"minimum":1.50},"a":{"pattern":"<é>"}}}`),
		Output: json.RawMessage(` true `),
		Defaults: store.TypeDefaults{
			Queue: "billing", Priority: 2, MaxAttempts: 7, MaxRepairs: 1, MaxNoProgress: 4, MaxCost: 5, Backoff: time.Second, BackoffMax: time.Minute,
			Timeout: time.Microsecond, ExpireAfter: time.Hour, Options: everyOption(), Labels: map[string]string{"team": "pay"}, Metadata: map[string]string{"a": "b"},
		},
		Redact: []string{"input/card"}, Expire: []task.Expiry{{Path: "email", After: time.Hour}},
	}
}

func (e *env) types(names ...string) []store.AnnouncedType {
	e.Helper()
	types, err := e.s.Types(e.Context(), e.ns, names...)
	e.require(err == nil, "Types(%q): %v", names, err)
	return types
}

// announceTypes announces types and reports whether the store changed.
func (e *env) announceTypes(by string, types ...store.AnnouncedType) (changed bool) {
	e.Helper()
	return !e.operate(store.AnnounceTypes{By: by, Types: types}).Existing
}

var typeCases = []testCase{
	{"announced types are read as they were announced, and are not audited", func(e *env) {
		e.equal("the types of an empty store", len(e.types()), 0)
		given := charge()
		mail := store.AnnouncedType{Name: mailType, SchemaVersion: 1}
		e.check(e.announceTypes("host:1", mail, given), "the first announcement changes nothing")
		want := charge()
		want.Input = json.RawMessage(`{"properties":{"a":{"pattern":"\u003cé\u003e"},"b":{"maximum":9007199254740993,"minimum":1.50}},"type":"object"}`)
		want.Output = json.RawMessage(`true`)
		got := e.types()
		e.require(len(got) == 2, "%d types, want 2", len(got))
		for i := range got {
			e.near("AnnouncedAt", got[i].AnnouncedAt, e.now())
			e.equal("AnnouncedBy", got[i].AnnouncedBy, "host:1")
			got[i].AnnouncedAt, got[i].AnnouncedBy = time.Time{}, ""
		}
		e.equal("the types", got, []store.AnnouncedType{want, mail})
		e.equal("what was given", given, charge())
		e.equal("the audit", len(e.snap().Audit), 0)
		e.equal("the types in the snapshot", e.snap().Types, e.types())
		e.equal("the types of another namespace", len(e.in(otherNamespace).types()), 0)

		for _, names := range [][]string{{mailType, chargeType, mailType}, {"acme.none.at.v1", mailType}, {chargeType}, {"acme.none.at.v1"}} {
			var found []string
			for _, t := range e.types(names...) {
				found = append(found, t.Name)
			}
			want := map[int][]string{3: {chargeType, mailType}, 2: {mailType}, 1: {chargeType}}[len(names)]
			if names[0] == "acme.none.at.v1" && len(names) == 1 {
				want = nil
			}
			e.equal(fmt.Sprintf("the types named %q", names), found, want)
		}
	}},
	{"what is known already changes nothing", func(e *env) {
		e.announceTypes("one", charge())
		e.pass(time.Second)
		e.unchanged("the same announcement", func() {
			e.check(!e.announceTypes("two", charge()), "the same announcement is no news")
			same := charge()
			same.Input = json.RawMessage(`{"properties": {"a":{"pattern":"<é>"}, "b":{"minimum":1.50,"maximum":9007199254740993}}, "type":"object"}`)
			same.AnnouncedAt, same.AnnouncedBy, same.CodeVersion = e.now(), "x", 0
			e.check(!e.announceTypes("two", same), "another order of keys, or no code version, is no news")
			e.check(!e.announceTypes("two"), "no type is no news")
		})
		more := charge()
		more.CodeVersion = 4
		e.check(e.announceTypes("two", more), "another code version is news")
		e.equal("who announced it", e.types()[0].AnnouncedBy, "two")
		other := charge()
		other.CodeVersion, other.Description = 0, "other"
		e.check(e.announceTypes("three", other), "another description is news")
		e.equal("the code version that is known", e.types()[0].CodeVersion, 4)
		other.Defaults.Labels["team"] = "changed by the caller"
		e.equal("the labels", e.types()[0].Defaults.Labels, charge().Defaults.Labels)
	}},
	{"an older schema version does not replace a newer one", func(e *env) {
		old, newer := charge(), charge()
		old.SchemaVersion, newer.Description = 1, "newer"
		e.announceTypes("new", newer)
		e.unchanged("an older announcement", func() { e.check(!e.announceTypes("old", old), "an older announcement is no news") })
		e.check(e.announceTypes("mixed", old, store.AnnouncedType{Name: mailType, SchemaVersion: 1}), "the other type of the command is news")
		e.equal("the schema version", e.types(chargeType)[0].SchemaVersion, 2)
		newest := store.AnnouncedType{Name: chargeType, SchemaVersion: 3}
		e.check(e.announceTypes("newest", newest), "a newer schema version is news")
		e.equal("the type", e.types(chargeType)[0].Input, json.RawMessage(nil))
	}},
	{"what is too large or wrong is refused, with its reason", func(e *env) {
		e.announceTypes("one", charge())
		fits := func(n int) json.RawMessage { return json.RawMessage(`{"title":"` + strings.Repeat("x", n-12) + `"}`) }
		for name, spoil := range map[string]func(*store.AnnouncedType){
			"input":       func(t *store.AnnouncedType) { t.Input = fits(store.MaxTypeSchema + 1) },
			"output":      func(t *store.AnnouncedType) { t.Output = fits(store.MaxTypeSchema + 1) },
			"description": func(t *store.AnnouncedType) { t.Description = strings.Repeat("x", store.MaxTypeText+1) },
		} {
			t := charge()
			spoil(&t)
			e.contains("the message", e.commandRefused(store.AnnounceTypes{Types: []store.AnnouncedType{{Name: mailType, SchemaVersion: 1}, t}}, store.ErrLimit), chargeType, name)
		}
		for want, spoil := range map[string]func(*store.AnnouncedType){
			"not JSON":       func(t *store.AnnouncedType) { t.Input = json.RawMessage(`{"a"`) },
			"more follows":   func(t *store.AnnouncedType) { t.Input = json.RawMessage(`{} {}`) },
			"neither":        func(t *store.AnnouncedType) { t.Output = json.RawMessage(`[]`) },
			"schema version": func(t *store.AnnouncedType) { t.SchemaVersion = 0 },
			"code version":   func(t *store.AnnouncedType) { t.CodeVersion = -1 },
			"owner":          func(t *store.AnnouncedType) { t.Name = "Charge" },
		} {
			t := charge()
			spoil(&t)
			e.unchanged("a wrong type", func() {
				err := e.command(store.AnnounceTypes{Types: []store.AnnouncedType{t}}).Err
				e.require(err != nil, "a type whose mistake is %q is announced", want)
				e.contains("the message", err.Error(), want)
			})
		}
		large := charge()
		large.Input, large.Output = fits(store.MaxTypeSchema), fits(store.MaxTypeSchema)
		e.check(e.announceTypes("one", large), "schemas of the largest size are no news")
		e.equal("the size that is read", len(e.types()[0].Input), store.MaxTypeSchema)
	}},
	{"many workers announce at once, and the newest schema version stays", func(e *env) {
		var fns []func()
		for v := 1; v <= 6; v++ {
			fns = append(fns, func() {
				t, m := charge(), store.AnnouncedType{Name: mailType, SchemaVersion: v}
				t.SchemaVersion = v
				types := []store.AnnouncedType{t, m}
				if v%2 == 0 {
					types = []store.AnnouncedType{m, t}
				}
				_, err := e.stores()[v%2].Operate(context.WithoutCancel(e.Context()), e.ns, store.AnnounceTypes{By: "w", Types: types})
				e.check(err == nil, "AnnounceTypes: %v", err)
			})
		}
		e.together(fns...)
		for _, t := range e.types() {
			e.equal("the schema version of "+t.Name, t.SchemaVersion, 6)
		}
	}},
}
