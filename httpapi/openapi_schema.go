package httpapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/task"
)

// node is a part of the document.
type node map[string]any

// describer builds the schemas of requests and responses. Named structs become components of the
// document. A field is required unless it is omitted when empty. Package schema, which describes
// the inputs of workers, has no required fields.
type describer struct {
	schemas map[string]node
	names   map[reflect.Type]string
}

// known are the types whose JSON differs from their Go form.
var known = map[reflect.Type]node{
	typeOf[time.Time]():       {"type": "string", "format": "date-time"},
	typeOf[time.Duration]():   {"type": "integer", "description": "nanoseconds"},
	typeOf[Span]():            {"type": "string", "description": "a duration like 90s or 1h30m"},
	typeOf[json.RawMessage](): {"description": "any JSON"},
	typeOf[task.State]():      {"type": "string", "enum": task.States()},

	typeOf[Decimal](): {"type": []string{"string", "number", "null"}, "description": "a decimal, at most 20 digits before and 18 behind the point"},
	typeOf[task.Rate](): {
		"type": "object", "required": []string{"key", "starts", "per"},
		"properties": node{
			"key": node{"type": "string"}, "starts": node{"type": "integer", "minimum": 1}, "burst": node{"type": "integer", "minimum": 1},
			"per": node{"type": "string", "description": "a duration such as 1s or 1m30s"},
		},
	},
	typeOf[order.ReasonCode](): {"type": []string{"string", "null"}},
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type.
func (d *describer) of(t reflect.Type) node {
	switch n := known[t]; {
	case n != nil:
		return n
	case t == typeOf[order.ExecResult](): // its methods fill in what is empty
		return d.component(t)
	case t.Implements(marshaler):
		return node{} // its methods may return anything
	case t.Implements(textMarshaler) && t.Kind() != reflect.Interface:
		return node{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.String:
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return node{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return node{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return node{"type": "string", "contentEncoding": "base64"}
		}
		return node{"type": "array", "items": d.of(t.Elem())}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return d.object(t)
		}
		return d.component(t)
	}
	return node{} // an interface may be anything
}

// component describes a struct once and returns a reference to it.
func (d *describer) component(t reflect.Type) node {
	name, found := d.names[t]
	if !found {
		name = d.nameOf(t)
		d.names[t] = name
		d.schemas[name] = nil // reserves the name
		d.schemas[name] = described(d.object(t), t, "")
	}
	return node{"$ref": "#/components/schemas/" + name}
}

func (d *describer) object(t reflect.Type) node {
	properties, required := make(node), []string{}
	for _, f := range jsonfields.Of(t) {
		of := d.of(f.Type)
		if most := f.Tag.Get("max"); most != "" {
			of = maps.Clone(of)
			of["maxItems"] = json.RawMessage(most)
		}
		of = described(of, f.Struct, f.GoName)
		if !f.Optional {
			required = append(required, f.Name)
			if f.Type.Kind() == reflect.Pointer {
				of = node{"anyOf": []any{of, node{"type": "null"}}}
			}
		}
		properties[f.Name] = of
	}
	n := node{"type": "object", "properties": properties}
	if len(required) > 0 {
		n["required"] = required
	}
	return n
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// nameOf returns the name of a type: Page[…/httpapi.Task] is PageTask. The second of two types with
// one name is Task2.
func (d *describer) nameOf(t reflect.Type) string {
	base, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		base += of[strings.LastIndexAny(of, "./")+1:]
	}
	base = notWord.ReplaceAllString(base, "")
	base = strings.ToUpper(base[:1]) + base[1:]
	name := base
	for i := 2; ; i++ {
		if _, taken := d.schemas[name]; !taken {
			return name
		}
		name = fmt.Sprint(base, i)
	}
}
