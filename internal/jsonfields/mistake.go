package jsonfields

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/typo"
)

// Mistake words an error of encoding/json for the one who wrote the JSON: which field is
// wrong, what it takes and what it has. into is the type that was decoded. An error that
// says that already is returned as it is; the others are wrapped.
func Mistake(err error, into reflect.Type) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		text := Wrong(wrong.Type, wrong.Value)
		if wrong.Field != "" {
			text = fmt.Sprintf("%s: %s", wrong.Field, text)
		}
		return &mistake{text, err}
	}
	if err == nil {
		return nil
	}
	if quoted, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return &mistake{"there is no field " + quoted + meant(strings.Trim(quoted, `"`), into), err}
	}
	return err
}

// mistake is an error in other words.
type mistake struct {
	text string
	err  error
}

func (m *mistake) Error() string { return m.text }
func (m *mistake) Unwrap() error { return m.err }

// maxListed is how many fields a message lists.
const maxListed = 12

// meant says which field a name was probably meant to be. encoding/json does not tell
// in which object the name stands, so those of all are looked at.
func meant(name string, into reflect.Type) string {
	best, least := "", 3
	all := names(into, make(map[reflect.Type]bool), nil)
	for _, known := range all {
		if d := typo.Distance(strings.ToLower(name), strings.ToLower(known), 2); d < least {
			best, least = known, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" (did you mean %q?)", best)
	case len(all) == 0 || len(all) > maxListed:
		return ""
	}
	return "; there are " + strings.Join(all, ", ")
}

// names adds the names of the fields that JSON of a type may have, in any object. seen are
// the types that were looked at.
func names(t reflect.Type, seen map[reflect.Type]bool, all []string) []string {
	if seen[t] {
		return all
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return names(t.Elem(), seen, all)
	case reflect.Struct:
	default:
		return all
	}
	for _, f := range Of(t) {
		if !slices.Contains(all, f.Name) {
			all = append(all, f.Name)
		}
		all = names(f.Type, seen, all)
	}
	return all
}

// Wrong says that JSON is no value of a type. what is its kind, with a number that the type
// cannot have ("string", "number 1.5"), as encoding/json says it.
func Wrong(t reflect.Type, what string) string {
	wanted := Wanted(t)
	if n, number := strings.CutPrefix(what, "number "); number && !strings.ContainsAny(n, ".eE") && !strings.Contains(wanted, "bits") {
		switch t.Kind() {
		case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64: // it is a whole number, and too large
			wanted += fmt.Sprintf(" of %d bits", t.Bits())
		}
	}
	return fmt.Sprintf("want %s, and it is a JSON %s", wanted, what)
}

// Wanted says what JSON a type takes: "a string", say.
func Wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number, 0 or more, of %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array of the right values"
	case reflect.Map:
		return "an object of the right values"
	case reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return Wanted(t.Elem())
	}
	return t.String()
}
