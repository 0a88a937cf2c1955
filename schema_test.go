package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

type schemaEmbedded struct{ Inner bool }

type schemaNode struct {
	Next *schemaNode `json:"next,omitempty"`
	Name string      `json:"name"`
}

type schemaAll struct {
	schemaEmbedded
	Named    schemaEmbedded `json:"named"`
	U        uint8
	F        float32
	When     time.Time
	Num      json.Number
	Addr     netip.Addr
	Raw      json.RawMessage
	Bytes    []byte
	Pair     [2]int
	Map      map[string]bool
	Any      any
	Node     schemaNode
	Optional *int
	Text     int `json:",string"`
	Skipped  int `json:"-"`
	private  int
}

func TestRepairSchema(t *testing.T) {
	want := map[string]string{
		"Inner": `{"type":"boolean"}`,
		"named": `{"additionalProperties":false,"properties":{"Inner":{"type":"boolean"}},"required":["Inner"],"type":"object"}`,
		"U":     `{"minimum":0,"type":"integer"}`, "F": `{"type":"number"}`, "When": `{"format":"date-time","type":"string"}`,
		"Num": `{"type":"number"}`, "Addr": `{"type":"string"}`, "Raw": `{}`, "Bytes": `{"contentEncoding":"base64","type":"string"}`,
		"Pair": `{"items":{"type":"integer"},"maxItems":2,"type":"array"}`, "Map": `{"additionalProperties":{"type":"boolean"},"type":"object"}`,
		"Any": `{}`, "Optional": `{"type":"integer"}`, "Text": `{"type":"string"}`,
		"Node": `{"additionalProperties":false,"properties":{"name":{"type":"string"},"next":{}},"required":["name"],"type":"object"}`,
	}
	inBubble(t, func(fx *fixture) {
		var got struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		typ := weaver.Define[schemaAll, int]("engine.repair.schema.v1", weaver.MaxRepairs(1))
		fx.run(typ.Handler(func(_ context.Context, in schemaAll) (int, error) { return in.private, nil },
			weaver.Repair(func(_ context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
				return nil, errors.Join(json.Unmarshal(r.Schema, &got), weaver.Permanent(errors.New("seen")))
			})))
		blocks(fx, enqueue(fx, weaver.Define[int, int]("engine.repair.schema.v1", weaver.MaxRepairs(1)), 1))
		for name, s := range want {
			equal(fx, name, string(got.Properties[name]), s)
		}
		equal(fx, "properties", len(got.Properties), len(want))
		equal(fx, "required", len(got.Required), len(want)-1)
	})
}
