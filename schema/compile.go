package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any // for listing the known fields at the place of a problem
}

// base is the address of every schema. Nothing is loaded from it.
const base = "weaver:///schema.json"

// Compile compiles a JSON Schema; an empty schema allows everything. The default version is draft 2020-12. It returns
// an error if the schema is not JSON or not a schema, if a pattern is not supported by package regexp, or if a $ref
// leads outside the schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`true`)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothing{})
	if err := c.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return &Schema{compiled, doc}, nil
}

// nothing is a loader that refuses every URL.
type nothing struct{}

var errOutside = errors.New("a schema may refer to its own definitions only: nothing else is loaded")

// Load implements jsonschema.URLLoader.
func (nothing) Load(url string) (any, error) { return nil, fmt.Errorf("%s: %w", url, errOutside) }

// decode reads one JSON value, with numbers as text.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the value, at byte %d", dec.InputOffset())
	}
	return bounded(v), nil
}

// maxExponent limits the numbers used in calculations: they are compared exactly, and 1e999999 has a million digits.
const maxExponent = 1000

// bounded replaces numbers beyond 1e±1000 by that bound: no limit in a schema lies beyond it.
func bounded(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = bounded(v[k])
		}
	case []any:
		for i := range v {
			v[i] = bounded(v[i])
		}
	case json.Number:
		return boundedNumber(string(v))
	}
	return v
}

func boundedNumber(text string) json.Number {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return json.Number(text)
	}
	exponent, err := strconv.Atoi(text[i+1:])
	switch {
	case err == nil && exponent <= maxExponent && exponent >= -maxExponent:
		return json.Number(text)
	case strings.Trim(text[:i], "-0.") == "": // zero, whatever the exponent
		return json.Number(text[:i])
	}
	sign := ""
	if text[0] == '-' {
		sign = "-"
	}
	if text[i+1] == '-' {
		return json.Number(fmt.Sprintf("%s1e-%d", sign, maxExponent))
	}
	return json.Number(fmt.Sprintf("%s1e%d", sign, maxExponent))
}

// Validate checks a JSON value. Its error is an *Error with up to 100 problems.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := decode(raw)
	if err != nil {
		return &Error{Problems: []Problem{{Detail: "it is not JSON: " + err.Error()}}}
	}
	err = s.compiled.Validate(v)
	var wrong *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &Error{Problems: s.problems(wrong)}
	}
	return err
}
