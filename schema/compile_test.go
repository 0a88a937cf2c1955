package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goweaver/weaver/schema"
)

func compile(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

func TestValidateSaysWhereAndWhat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, value string
		want          []schema.Problem
	}{
		{`{"type":["integer","null"]}`, `"x"`, []schema.Problem{{"", "it is a string, want an integer"}}},
		{`{"type":["string","array","null"]}`, `{}`, []schema.Problem{{"", "it is an object, want a string or an array"}}},
		{
			`{"properties":{"a/b":{"items":{"$ref":"#/$defs/n"}},"c":{"maximum":9007199254740992}},"additionalProperties":false,"$defs":{"n":{"type":"number"}}}`,
			`{"a/b":[1,"x",null],"c":9007199254740993,"d~":1}`,
			[]schema.Problem{{"/a~1b/1", "it is a string, want a number"}, {"/a~1b/2", "it is null, want a number"}, {"/c", "it is more than 9007199254740992"}, {"/d~0", `the field is not known; there are "a/b", "c"`}},
		},
		{`{"$defs":{"e":{"properties":{"z":{}},"additionalProperties":false}},"properties":{"x":{"$ref":"#/$defs/e"}}}`, `{"x":{"y":1}}`, []schema.Problem{{"/x/y", `the field is not known; there are "z"`}}},
		{`{"additionalProperties":false}`, `{"y":1}`, []schema.Problem{{"/y", "the field is not known; no field is allowed here"}}},
		{`{"required":["a","b"]}`, `{"b":1}`, []schema.Problem{{"", `the field "a" is missing`}}},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"string"}},"type":"object"}]}`, `{"a":1}`, []schema.Problem{{"", "it fits none of the alternatives: /a it is a number, want a string, or it is an object, want a string"}}},
		{`{"oneOf":[{},{}]}`, `1`, []schema.Problem{{"", "it fits several alternatives but may fit only one"}}},
		{`{"enum":["a",1.50]}`, `"secret"`, []schema.Problem{{"", `it is not one of "a", 1.50`}}},
		{`{"pattern":"^a$"}`, `"secret"`, []schema.Problem{{"", "it does not match the pattern ^a$"}}},
		{`{"minLength":3}`, `"é"`, []schema.Problem{{"", "it has 1 characters, want at least 3"}}},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []schema.Problem{{"", `with the field "a", "b" is required`}}},
		{`false`, `1`, []schema.Problem{{"", "nothing is allowed here"}}},
		{`{}`, `{"a"`, []schema.Problem{{"", "it is not JSON: unexpected EOF"}}},
		{`{}`, ` `, []schema.Problem{{"", "it is not JSON: it is empty"}}},
		{`{}`, `1 2`, []schema.Problem{{"", "it is not JSON: something follows the value, at byte 3"}}},
		{`{"minimum":0.5,"multipleOf":2}`, `1e-999999999`, []schema.Problem{{"", "it is less than 0.5"}, {"", "it is not a multiple of 2"}}},
	} {
		err := compile(t, c.schema).Validate(json.RawMessage(c.value))
		var wrong *schema.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s by %s: %v", c.value, c.schema, err)
			continue
		}
		if !reflect.DeepEqual(wrong.Problems, c.want) {
			t.Errorf("%s by %s:\n%q\nwant\n%q", c.value, c.schema, wrong.Problems, c.want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the value: %v", err)
		}
	}
}

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{``, `{"a":1}`},
		{`true`, `null`},
		{`{"maximum":9007199254740993}`, `9007199254740993`},
		{`{"type":"integer"}`, `1e999999999`},
		{`{"minimum":0}`, `0e999999999`},
		{`{"format":"date-time"}`, `"yesterday"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"$ref":"#/definitions/a"}`, `1`},
	} {
		if err := compile(t, c[0]).Validate(json.RawMessage(c[1])); err != nil {
			t.Errorf("%s by %s: %v", c[1], c[0], err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"$ref":"https://example.com/x.json"}`:  "nothing else is loaded",
		`{"$ref":"file:///etc/passwd"}`:          "nothing else is loaded",
		`{"$ref":"other.json"}`:                  "nothing else is loaded",
		`{"$schema":"https://example.com/meta"}`: "nothing else is loaded",
		`{"$ref":"#/$defs/none"}`:                "none",
		`{"pattern":"("}`:                        "pattern",
		`{"type":"text"}`:                        "type",
		`{"a"`:                                   "not JSON",
		`[]`:                                     "schema",
		`{"$id":"https://example.com/a","$ref":"b#/c"}`: "nothing else is loaded",
	} {
		if _, err := schema.Compile(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", raw, err, want)
		}
	}
}

// Numbers that are slow to calculate with are validated fast: without the bound these would exceed a test's timeout.
func TestValidateIsFastOnHugeNumbers(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"minimum":0,"maximum":1e300,"multipleOf":1}}`)
	value := `[` + strings.Repeat(`1e999999,`, 100000) + `1]`
	var wrong *schema.Error
	if err := s.Validate(json.RawMessage(value)); !errors.As(err, &wrong) || len(wrong.Problems) != 100 {
		t.Errorf("%T with %d problems, want 100", err, len(wrong.Problems))
	}
}

func FuzzValidate(f *testing.F) {
	f.Add(`{"minimum":1e9,"properties":{"a":{"$ref":"#"}}}`, `{"a":1E+9}`)
	f.Add(`{"$ref":"#"}`, `[-0e5]`)
	f.Fuzz(func(t *testing.T, raw, value string) {
		s, err := schema.Compile(json.RawMessage(raw))
		if err != nil {
			return
		}
		err = s.Validate(json.RawMessage(value))
		var wrong *schema.Error
		if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
			t.Errorf("%s by %s: %#v", value, raw, err)
		}
	})
}
