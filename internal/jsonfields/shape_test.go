package jsonfields_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/jsonfields"
)

type tree struct {
	Name string
	Kids []*tree
}

type embedded struct {
	By string `json:"by"`
}

type answer struct {
	embedded
	Approved bool              `json:"approved"`
	Left     string            `json:"-"`
	Quoted   int               `json:"quoted,string"`
	At       *time.Time        `json:"at"`
	Data     []byte            `json:"data"`
	Tags     map[string][]uint `json:"tags"`
	Pair     [2]float64        `json:"pair"`
	Big      big.Int           `json:"big"`
	Raw      json.RawMessage   `json:"raw"`
	Any      any               `json:"any"`
	Tree     tree              `json:"tree"`
}

// A shape refuses the same JSON as its type, with the same message, except where the type decodes itself.
func TestShape(t *testing.T) {
	t.Parallel()
	if got, want := jsonfields.Shape(reflect.TypeFor[struct {
		Approved bool   `json:"approved"`
		By       string `json:"by"`
	}]()), `{"approved":"bool","by":"string"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	type loop *loop
	for _, of := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[big.Int](), reflect.TypeFor[map[int]string](), reflect.TypeFor[loop](), reflect.TypeFor[chan int]()} {
		if got := jsonfields.Shape(of); got != "" {
			t.Errorf("%v has the shape %s", of, got)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[answer](), reflect.TypeFor[*answer](), reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[[]int8](), reflect.TypeFor[time.Time](), reflect.TypeFor[map[string]answer](), reflect.TypeFor[struct{}]()} {
		shape := jsonfields.Shape(of)
		for _, raw := range []string{
			`true`, `"yes"`, `null`, `7`, `300`, `-1.5`, `[]`, `[1, 300]`, `{}`, `{"approved": true, "by": "ann"}`, `{"APPROVED": true}`, `{"aproved": true}`, `{"approved": "yes"}`,
			`{"-": 1}`, `{"-": 300}`, `{"Left": "x"}`, `{"at": "2026-11-20T12:00:00Z"}`, `{"at": "noon"}`, `{"data": "aGk="}`, `{"data": "?"}`, `{"data": [1, 2]}`,
			`{"tags": {"a": [1]}}`, `{"tags": {"a": [-1]}}`, `{"tags": []}`, `{"pair": [1, 2, 3]}`, `{"pair": ["a"]}`, `{"big": 1}`, `{"raw": {"x": 1}}`, `{"any": [{}]}`,
			`{"tree": {"Name": "a", "Kids": [{"Name": "b"}]}}`, `{"tree": {"Nam": "a"}}`, `{"a": {"by": 1}}`, `"2026-11-20T12:00:00Z"`,
		} {
			dec := json.NewDecoder(bytes.NewReader([]byte(raw)))
			dec.DisallowUnknownFields()
			want := jsonfields.Mistake(dec.Decode(reflect.New(of).Interface()), of)
			got := jsonfields.CheckShape(shape, json.RawMessage(raw))
			if (got == nil) != (want == nil) {
				t.Errorf("%s for %v: got %v, want %v", raw, of, got, want)
			}
		}
	}
	for _, bad := range []string{"", "{", `"complex128"`, `["int","int"]`, `{"":"int","a":"int"}`, `7`, strings.Repeat("[", 5000)} {
		if err := jsonfields.CheckShape(bad, json.RawMessage(`"x"`)); err != nil {
			t.Errorf("the shape %.20s refuses: %v", bad, err)
		}
	}
}
