package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/goweaver/weaver/task"
)

// document makes the OpenAPI 3.1 document of the routes.
func document(routes []route) ([]byte, error) {
	d := documenter{schemas: make(map[string]json.RawMessage)}
	problem, err := d.schema(typeOf[Problem]())
	if err != nil {
		return nil, err
	}
	paths := make(map[string]map[string]any)
	for i := range routes {
		r := &routes[i]
		op, err := d.operation(r, problem)
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", r.id, err)
		}
		at := paths[r.pattern]
		if at == nil {
			at = make(map[string]any)
			paths[r.pattern] = at
		}
		at[strings.ToLower(r.method)] = op
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Weaver", "version": "1",
			"summary":     "Durable tasks over HTTP.",
			"description": "Values of tasks are shown with the access `payloads` only, and masked as the tasks say. Answers that are no success are problem details (RFC 9457). A property that this document does not name may be added to an answer: ignore it.",
			"license":     map[string]any{"name": "MIT", "identifier": "MIT"},
		},
		"servers": []any{map[string]any{"url": "."}},
		"paths":   paths,
		"components": map[string]any{
			"schemas": d.schemas,
			"securitySchemes": map[string]any{
				"token":    map[string]any{"type": "http", "scheme": "bearer"},
				"password": map[string]any{"type": "http", "scheme": "basic"},
				"cookie":   map[string]any{"type": "apiKey", "in": "cookie", "name": cookieName},
			},
		},
	}
	return json.MarshalIndent(doc, "", " ")
}

type documenter struct {
	schemas map[string]json.RawMessage
}

// operation documents one route.
func (d *documenter) operation(r *route, problem any) (map[string]any, error) {
	op := map[string]any{"operationId": r.id, "summary": r.summary}
	if !r.public {
		op["security"] = []any{map[string]any{"token": []any{}}, map[string]any{"password": []any{}}, map[string]any{"cookie": []any{}}}
		op["description"] = "Access: " + r.access.String() + "."
	}
	var params []any
	for _, name := range r.names() {
		params = append(params, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, p := range r.params {
		params = append(params, d.parameter(&p))
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != nil {
		s, err := d.schema(r.body)
		if err != nil {
			return nil, err
		}
		op["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": s}}}
	}
	responses := make(map[string]any)
	for _, a := range r.answers {
		content := map[string]any{"description": a.summary}
		if a.typ != nil || a.media != "" {
			media := map[string]any{}
			if a.typ != nil {
				s, err := d.schema(a.typ)
				if err != nil {
					return nil, err
				}
				media["schema"] = s
			}
			content["content"] = map[string]any{a.mediaType(): media}
		}
		if len(a.headers) > 0 {
			headers := make(map[string]any)
			for _, h := range a.headers {
				headers[h] = map[string]any{"schema": map[string]any{"type": "string"}}
			}
			content["headers"] = headers
		}
		responses[strconv.Itoa(a.status)] = content
	}
	for _, status := range r.statuses() {
		responses[strconv.Itoa(status)] = map[string]any{
			"description": http.StatusText(status),
			"content":     map[string]any{"application/problem+json": map[string]any{"schema": problem}},
		}
	}
	op["responses"] = responses
	return op, nil
}

func (d *documenter) parameter(p *param) map[string]any {
	s := map[string]any{"type": p.typ}
	if p.typ == "date-time" {
		s = map[string]any{"type": "string", "format": p.typ}
	}
	if p.many {
		s = map[string]any{"type": "array", "items": s}
	}
	return map[string]any{"name": p.name, "in": p.in, "description": p.summary, "schema": s}
}

// schema returns a reference to the schema of a type, which it adds to the components.
func (d *documenter) schema(t reflect.Type) (any, error) {
	r := jsonschema.Reflector{Mapper: mapped, Namer: schemaName, AllowAdditionalProperties: true}
	s := r.ReflectFromType(t)
	s.Version = ""
	defs := s.Definitions
	s.Definitions = nil
	for name, def := range defs {
		raw, err := plain(def)
		if err != nil {
			return nil, err
		}
		if old, known := d.schemas[name]; known && !bytes.Equal(old, raw) {
			return nil, fmt.Errorf("two types are named %s", name)
		}
		d.schemas[name] = raw
	}
	raw, err := plain(s)
	return raw, err
}

// plain encodes a schema whose references lead to the components.
func plain(s *jsonschema.Schema) (json.RawMessage, error) {
	raw, err := json.Marshal(s)
	return bytes.ReplaceAll(raw, []byte(`"#/$defs/`), []byte(`"#/components/schemas/`)), err
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// schemaName names a type: Page[…/httpapi.Task] is PageTask, task.Error is Error.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if name == "" {
		return ""
	}
	base, of, generic := strings.Cut(name, "[")
	if generic {
		name = base + of[strings.LastIndexAny(of, "./")+1:]
	}
	name = notWord.ReplaceAllString(name, "")
	name = strings.ToUpper(name[:1]) + name[1:]
	if t.PkgPath() != packagePath && !generic && slices.Contains(ownNames, name) {
		name = "Recorded" + name
	}
	return name
}

var (
	packagePath = reflect.TypeFor[Problem]().PkgPath()
	ownNames    = []string{"Task", "History", "JobTask", "Draft", "JobResult", "Event"} // that packages below have, too
)

// mapped are the types whose JSON is not what their Go form suggests.
func mapped(t reflect.Type) *jsonschema.Schema {
	switch t {
	case typeOf[task.ID](), typeOf[task.LeaseID]():
		return &jsonschema.Schema{Type: "string"}
	case typeOf[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case typeOf[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "nanoseconds"}
	case typeOf[Span]():
		return &jsonschema.Schema{Type: "string", Description: "a duration like 90s or 1h30m"}
	case typeOf[json.RawMessage]():
		return &jsonschema.Schema{Description: "any JSON"}
	case typeOf[task.State]():
		var list []any
		for _, s := range task.States() {
			list = append(list, string(s))
		}
		return &jsonschema.Schema{Type: "string", Enum: list}
	}
	return nil
}
