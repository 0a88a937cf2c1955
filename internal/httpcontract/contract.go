package httpcontract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract holds the declarations of a document. It is safe for concurrent use.
type Contract struct {
	doc      node
	mux      *http.ServeMux // finds the document's path for a request
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by pointer
}

// node is an object of the document.
type node = map[string]any

// base is the address of the document. Nothing is loaded from it.
const base = "weaver:///openapi.json"

// Read reads a document.
func Read(document []byte) (*Contract, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	doc, isObject := parsed.(node)
	if !isObject {
		return nil, errors.New("the document is not a JSON object")
	}
	c := &Contract{doc: doc, mux: http.NewServeMux(), schemas: make(map[string]*jsonschema.Schema)}
	for path := range object(doc, "paths") {
		c.mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {}) // the document uses the patterns of package http
	}
	closeSchemas(doc)
	c.compiler = jsonschema.NewCompiler()
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return c, nil
}

// Operations lists the IDs of all operations.
func (c *Contract) Operations() (ids []string) {
	for path := range object(c.doc, "paths") {
		for _, op := range object(c.doc, "paths", path) {
			if o, isObject := op.(node); isObject {
				ids = append(ids, text(o, "operationId"))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// closeSchemas forbids undeclared properties of objects.
func closeSchemas(v any) {
	switch v := v.(type) {
	case node:
		_, isSchema := v["properties"].(node)
		_, open := v["additionalProperties"]
		if isSchema && !open && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, below := range v {
			closeSchemas(below)
		}
	case []any:
		for _, below := range v {
			closeSchemas(below)
		}
	}
}

// operation finds the operation of a request. id is "" if the path has no such method, and path is "" if the document
// has no such path.
func (c *Contract) operation(r *http.Request) (path, method, id string) {
	_, path = c.mux.Handler(r)
	if path == "" {
		return "", "", ""
	}
	method = strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	return path, method, text(object(c.doc, "paths", path, method), "operationId")
}

// pointerEscaper escapes a key for a JSON pointer in a URL.
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// validate checks a value against the schema at a place of the document.
func (c *Contract) validate(body []byte, at ...string) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	pointer := "#"
	for _, part := range at {
		pointer += "/" + pointerEscaper.Replace(part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.schemas[pointer]
	if s == nil {
		if s, err = c.compiler.Compile(base + pointer); err != nil {
			return fmt.Errorf("the document's schema: %w", err)
		}
		c.schemas[pointer] = s
	}
	return s.Validate(v)
}

// object returns the object at a path of keys, or nil.
func object(n node, keys ...string) node {
	for _, key := range keys {
		n, _ = n[key].(node)
	}
	return n
}

func text(n node, key string) string {
	s, _ := n[key].(string)
	return s
}

// keys lists the keys of an object, for messages.
func keys(n node) string {
	if len(n) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(n)), ", ")
}

// Record collects the operations that succeeded. Its zero value is ready.
type Record struct {
	mu   sync.Mutex
	seen map[string]bool // by operation; false: it exists but did not succeed
}

func (r *Record) add(id string, succeeded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[id] = r.seen[id] || succeeded
}

// Expect adds the operations of a contract, which must succeed once.
func (r *Record) Expect(c *Contract) {
	for _, id := range c.Operations() {
		r.add(id, false)
	}
}

// Missing lists the operations that never succeeded.
func (r *Record) Missing() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, succeeded := range r.seen {
		if !succeeded {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// pretty shortens a body for a message.
func pretty(body []byte) string {
	var buf bytes.Buffer
	if json.Compact(&buf, body) == nil {
		body = buf.Bytes()
	}
	return fmt.Sprintf("%.600s", body)
}
