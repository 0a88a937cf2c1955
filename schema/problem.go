package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Error lists the problems of a value.
type Error struct {
	Problems []Problem // at least one, in the order of their pointers
}

// Problem is one problem of a value. It does not repeat values, which may be secret.
type Problem struct {
	Pointer string `json:"pointer"` // JSON Pointer (RFC 6901); "": the whole value
	Detail  string `json:"detail"`
}

// Error implements error.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = cmp.Or(p.Pointer, "the whole value") + ": " + p.Detail
	}
	return strings.Join(texts, "; ")
}

const (
	maxProblems = 100     // reported per value
	maxPointer  = 4 << 10 // bytes of a pointer; a deeper problem is reported at an ancestor
)

func (s *Schema) problems(wrong *jsonschema.ValidationError) []Problem {
	var told first
	s.gather(wrong, &told)
	return told.list
}

// first collects the first problems of a value, in order and without duplicates. A large value may have as many
// problems as elements, so texts are created only for reported ones.
type first struct{ list []Problem }

func (f *first) add(at string, detail func() string) {
	full := len(f.list) == maxProblems
	if full && at > f.list[maxProblems-1].Pointer {
		return
	}
	p := Problem{at, detail()}
	i, again := slices.BinarySearchFunc(f.list, p, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Detail, b.Detail))
	})
	if again || i == maxProblems {
		return
	}
	if full {
		f.list = f.list[:maxProblems-1]
	}
	f.list = slices.Insert(f.list, i, p)
}

// gather adds the problems at the leaves. Alternatives, of which a value must satisfy one, are one problem.
func (s *Schema) gather(e *jsonschema.ValidationError, to *first) {
	at := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if one, ok := k.(*kind.OneOf); ok && len(one.Subschemas) > 0 {
			to.add(at, func() string { return "it fits several alternatives but may fit only one" })
			return
		}
		to.add(at, func() string { return s.alternatives(e, at) })
		return
	case *kind.AdditionalProperties:
		known := sync.OnceValue(func() string { return s.known(e.SchemaURL) })
		for _, name := range k.Properties {
			to.add(pointer(append(slices.Clip(e.InstanceLocation), name)), func() string { return "the field is not known; " + known() })
		}
		return
	case *kind.Required:
		for _, name := range k.Missing {
			to.add(at, func() string { return fmt.Sprintf("the field %q is missing", name) })
		}
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			s.gather(c, to)
		}
		return
	}
	to.add(at, func() string { return detail(e.ErrorKind) })
}

const (
	maxAlternatives = 20      // reported reasons for a value that satisfies no alternative
	maxDetail       = 4 << 10 // total bytes of these reasons
)

// alternatives explains why a value satisfies no alternative.
func (s *Schema) alternatives(e *jsonschema.ValidationError, at string) string {
	var told first
	for _, c := range e.Causes {
		s.gather(c, &told)
	}
	var inner []string
	for _, p := range told.list {
		if p.Pointer != at {
			p.Detail = p.Pointer + " " + p.Detail
		}
		inner = append(inner, p.Detail)
	}
	slices.Sort(inner)
	inner = slices.Compact(inner)
	all := strings.Join(inner[:min(len(inner), maxAlternatives)], ", or ")
	if len(all) > maxDetail {
		all = strings.ToValidUTF8(all[:maxDetail], "")
	} else if len(inner) <= maxAlternatives {
		return "it fits none of the alternatives: " + all
	}
	return "it fits none of the alternatives: " + all + ", and more"
}

// detail describes a problem.
func detail(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("it is %s, want %s", typeWords(k.Got), wanted(k.Want))
	case *kind.Enum:
		return "it is not one of " + values(k.Want)
	case *kind.Const:
		return "want " + values([]any{k.Want})
	case *kind.Format:
		return fmt.Sprintf("it does not have the format %s", k.Want)
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Not:
		return "this value is not allowed here"
	case *kind.Minimum:
		return "it is less than " + number(k.Want)
	case *kind.Maximum:
		return "it is more than " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "want more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "want less than " + number(k.Want)
	case *kind.MultipleOf:
		return "it is not a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("it has %d characters, want at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("it has %d characters, want at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("it has %d items, want at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("it has %d items, want at most %d", k.Got, k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("it has %d fields, want at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("it has %d fields, want at most %d", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("it has %d items too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("the items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Pattern:
		return "it does not match the pattern " + k.Want
	case *kind.ContentEncoding:
		return "it is not encoded as " + k.Want
	case *kind.Dependency:
		return fmt.Sprintf("with the field %q, %s is required", k.Prop, quoted(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("with the field %q, %s is required", k.Prop, quoted(k.Missing))
	case *kind.PropertyNames:
		return fmt.Sprintf("a field may not have the name %.100q", k.Property)
	}
	return "it violates the rule " + strings.Join(k.KeywordPath(), "/")
}

// typeWords describes a JSON type.
func typeWords(t string) string {
	switch t {
	case "null":
		return "null"
	case "integer", "array", "object":
		return "an " + t
	}
	return "a " + t
}

// wanted lists the allowed JSON types, with null only if nothing else is allowed.
func wanted(types []string) string {
	var words []string
	for _, t := range types {
		if t != "null" || len(types) == 1 {
			words = append(words, typeWords(t))
		}
	}
	return strings.Join(words, " or ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func values(of []any) string {
	texts := make([]string, 0, len(of))
	for _, v := range of {
		raw, err := json.Marshal(v)
		if err != nil {
			continue // it came from JSON
		}
		texts = append(texts, string(raw))
	}
	return strings.Join(texts, ", ")
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = strconv.Quote(n)
	}
	return strings.Join(texts, ", ")
}

// maxKnown is the maximum number of known fields listed for an unknown field.
const maxKnown = 20

// known lists the fields of the object at a place of the schema.
func (s *Schema) known(url string) string {
	_, fragment, _ := strings.Cut(url, "#")
	at := s.doc
	for token := range strings.SplitSeq(strings.Trim(fragment, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			if token != "" {
				at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
			}
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
				at = v[i]
			}
		}
	}
	object, _ := at.(map[string]any)
	fields, _ := object["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(fields))
	switch more := len(names) - maxKnown; {
	case len(names) == 0:
		return "no field is allowed here"
	case more > 0:
		return fmt.Sprintf("there are %s and %d more", quoted(names[:maxKnown]), more)
	}
	return "there are " + quoted(names)
}

// pointer formats a path as a JSON Pointer (RFC 6901), cut if it is too long.
func pointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		token = escaper.Replace(token)
		if b.Len()+1+len(token) > maxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(token)
	}
	return b.String()
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")
