package schema_test

//lint:file-ignore SA5008 odd tags are among what encoding/json takes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
)

type base struct {
	ID   int64  `json:"id"`
	Both string `json:"both"`
}

type Outer struct{ Inner bool }

type tree struct {
	Value string  `json:"value,omitempty"`
	Kids  []*tree `json:"kids"`
	Any   map[string]tree
}

type page[T any] struct {
	Items []T    `json:"items"`
	Next  *T     `json:"next,omitempty"`
	Note  string `json:"note" weaver:"redact"`
}

type forest []forest

type level int

func (l level) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"level": int(l)}) }

type everything struct {
	base
	*Outer
	Named   base   `json:"named"`
	Both    int    `json:"both"`
	Mail    string `json:"mail" weaver:"expire=1h"`
	U8      uint8
	I16     int16
	U64     uint64
	F32     float32
	When    time.Time
	At      *time.Time
	For     time.Duration
	Num     json.Number
	Addr    netip.Addr
	Raw     json.RawMessage
	Bytes   []byte
	Hash    [4]byte
	Pair    [2]int
	Map     map[string][]bool
	ByInt   map[int]string
	Any     any
	Err     error
	Text    int    `json:",string"`
	Quoted  string `json:"quoted,string"`
	PtrText *bool  `json:",string"`
	Ignored []int  `json:",string"`
	Level   level
	Tree    tree
	Page    page[page[int]]
	Forest  forest
	None    weaver.None
	Dash    int `json:"-,"`
	Odd     int `json:"a'b"`
	Gone    int `json:"-"`
	secret  int
}

func ofIn[T any](t testing.TB) (json.RawMessage, *schema.Schema) {
	t.Helper()
	info := schema.Of(weaver.Define[T, bool]("acme.test.of.v1"))
	s, err := schema.Compile(info.Input)
	if err != nil {
		t.Fatalf("%s: %v", info.Input, err)
	}
	return info.Input, s
}

func TestOf(t *testing.T) {
	t.Parallel()
	raw := func(in, _ reflect.Type, info store.AnnouncedType) string { return string(info.Input) }
	one := func(info store.AnnouncedType) string { return raw(nil, nil, info) }
	const head = `"$schema":"https://json-schema.org/draft/2020-12/schema",`
	for _, c := range []struct {
		of   weaver.AnyType
		want string
	}{
		{weaver.Define[string, bool]("a.b.c.v1"), `{` + head + `"type":["string","null"]}`},
		{weaver.Define[any, bool]("a.b.c.v1"), `{` + strings.TrimSuffix(head, ",") + `}`},
		{weaver.Define[weaver.None, bool]("a.b.c.v1"), `{` + head + `"additionalProperties":false,"type":["object","null"]}`},
		{weaver.Define[time.Time, bool]("a.b.c.v1"), `{` + head + `"format":"date-time","type":["string","null"]}`},
		{weaver.Define[*time.Time, bool]("a.b.c.v1"), `{` + head + `"format":"date-time","type":["string","null"]}`},
		{weaver.Define[time.Duration, bool]("a.b.c.v1"), `{` + head + `"description":"nanoseconds","maximum":9223372036854775807,"minimum":-9223372036854775808,"type":["integer","null"]}`},
		{weaver.Define[json.RawMessage, bool]("a.b.c.v1"), `{` + strings.TrimSuffix(head, ",") + `}`},
		{weaver.Define[map[string]uint8, bool]("a.b.c.v1"), `{` + head + `"additionalProperties":{"maximum":255,"minimum":0,"type":["integer","null"]},"type":["object","null"]}`},
		{weaver.Define[[]any, bool]("a.b.c.v1"), `{` + head + `"type":["array","null"]}`},
		{weaver.Define[forest, bool]("a.b.c.v1"), `{` + head + `"items":{"$ref":"#"},"type":["array","null"]}`},
		{weaver.Define[tree, bool]("a.b.c.v1"), `{` + head + `"additionalProperties":false,"properties":{"Any":{"additionalProperties":{"$ref":"#"},"type":["object","null"]},` +
			`"kids":{"items":{"$ref":"#"},"type":["array","null"]},"value":{"type":["string","null"]}},"type":["object","null"]}`},
	} {
		if got := one(schema.Of(c.of)); got != c.want {
			t.Errorf("schema of %T:\n%s\nwant\n%s", c.of, got, c.want)
		}
	}
}

// Values encoded by encoding/json satisfy the schema of their type.
func TestOfAcceptsWhatIsEncoded(t *testing.T) {
	t.Parallel()
	raw, s := ofIn[everything](t)
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for range 2000 {
		v := everything{secret: 1}
		fill(r, reflect.ValueOf(&v).Elem(), 4)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(encoded); err != nil {
			t.Fatalf("%v\n%s\nis refused by %s", err, encoded, raw)
		}
	}
}

// fill sets a value at random, up to the given depth.
func fill(r *rand.Rand, v reflect.Value, deep int) {
	var of any // stays nil for an unexported embedded struct
	if v.CanInterface() {
		of = v.Addr().Interface()
	}
	switch p := of.(type) {
	case *time.Time:
		*p = time.Unix(r.Int64N(4e9), 0).UTC()
		return
	case *json.Number:
		*p = json.Number([]string{"", "0", "-1.5", "1e400", "9007199254740993"}[r.IntN(5)])
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{1, 2, 3, byte(r.IntN(256))})
		return
	case *json.RawMessage:
		*p = json.RawMessage([]string{`null`, `{"a":[1]}`, `"x"`}[r.IntN(3)])
		return
	case *any:
		*p = []any{nil, 1.5, "x", []any{true}, map[string]any{"a": nil}}[r.IntN(5)]
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("é\x00<", r.IntN(4)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(r.NormFloat64() * 1e9)))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64)) // truncated to the type
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Pointer:
		if v.CanSet() && deep > 0 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), deep-1)
		}
	case reflect.Slice:
		if deep > 0 && r.IntN(4) > 0 {
			n := r.IntN(3)
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), deep-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), deep)
		}
	case reflect.Map:
		if deep > 0 && r.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(r, key, 0)
				fill(r, elem, deep-1)
				v.SetMapIndex(key, elem)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct {
				fill(r, v.Field(i), deep)
			}
		}
	}
}

// A schema agrees with WithJSON about the shape of values.
func TestOfAgreesWithTheDecoder(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[everything, bool]("acme.test.of.v1")
	raw, s := ofIn[everything](t)
	accepts := []string{
		`null`, `{}`, `{"id":null,"named":null,"Tree":null}`, `{"U8":255,"I16":-32768,"U64":18446744073709551615}`, `{"id":9007199254740993}`, `{"Bytes":"AAE="}`, `{"Bytes":[1,2]}`,
		`{"Pair":[1,2,3],"Hash":[]}`, `{"Num":"12"}`, `{"Num":12}`, `{"Text":"12","PtrText":"true","quoted":"\"x\""}`, `{"Inner":true}`, `{"both":1}`, `{"-":1,"Odd":2}`,
		`{"Tree":{"kids":[null,{"kids":[{"value":"x"}]}],"Any":{"a":{}}}}`, `{"Page":{"items":[{"items":[1]}],"next":null}}`, `{"Forest":[[],[[]],null]}`, `{"ByInt":{"1":"x"}}`, `{"Any":[1,{"a":2}]}`, `{"When":"2026-11-23T09:00:00Z"}`,
		`{"Ignored":[1]}`, `{"Addr":"1.2.3.4"}`,
	}
	refuses := []string{
		`{"U8":256}`, `{"U8":-1}`, `{"I16":32768}`, `{"U64":18446744073709551616}`, `{"id":9223372036854775808}`, `{"id":"1"}`, `{"id":1.5}`, `{"named":[]}`, `{"Text":12}`, `{"unknown":1}`,
		`{"Gone":1}`, `{"secret":1}`, `{"base":{}}`, `{"Outer":{}}`, `{"a'b":1}`, `{"Tree":{"kids":[{"kids":[{"value":1}]}]}}`, `{"Page":{"items":[{"items":["x"]}]}}`, `{"Forest":[1]}`, `{"Hash":"AAE="}`, `[]`, `{"both":"x"}`, `{"None":{"x":1}}`,
		`{"When":1}`, `{"Ignored":"[1]"}`,
	}
	for i, text := range append(accepts, refuses...) {
		wants := i < len(accepts)
		if err := typ.WithJSON(json.RawMessage(text)).Err(); (err == nil) != wants {
			t.Errorf("WithJSON(%s): %v; this test thinks otherwise", text, err)
		}
		if err := s.Validate(json.RawMessage(text)); (err == nil) != wants {
			t.Errorf("Validate(%s): %v, want valid: %v by\n%s", text, err, wants, raw)
		}
	}
}

func TestOfHasTags(t *testing.T) {
	t.Parallel()
	raw, _ := ofIn[everything](t)
	var is struct {
		Properties map[string]map[string]any                                 `json:"properties"`
		Defs       map[string]struct{ Properties map[string]map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &is); err != nil {
		t.Fatal(err)
	}
	if got := is.Properties["mail"][schema.Expires]; got != "1h" {
		t.Errorf("mail expires %v", got)
	}
	redacted := 0
	for _, def := range is.Defs {
		if def.Properties["note"][schema.Redacted] == true {
			redacted++
		}
	}
	if redacted != 2 {
		t.Errorf("%d notes are redacted, want those of page[int] and page[page[int]] in\n%s", redacted, raw)
	}
}

func TestOfIsDeterministic(t *testing.T) {
	t.Parallel()
	first, _ := ofIn[everything](t)
	for range 20 {
		if again, _ := ofIn[everything](t); !bytes.Equal(first, again) {
			t.Fatalf("two schemas of one type:\n%s\n%s", first, again)
		}
	}
}

// A schema that a store would refuse is omitted.
func TestOfLeavesOutWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	fields := make([]reflect.StructField, 5000)
	for i := range fields {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int64]()}
	}
	info := schema.Of(large{weaver.Define[int, bool]("acme.test.large.v1"), reflect.StructOf(fields)})
	if info.Input != nil || info.Output == nil {
		t.Errorf("the input has a schema of %d bytes, the output one of %d", len(info.Input), len(info.Output))
	}
}

type large struct {
	weaver.AnyType
	in reflect.Type
}

func (l large) Payloads() (in, out reflect.Type) { return l.in, reflect.TypeFor[bool]() }
