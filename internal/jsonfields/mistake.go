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

// Mistake rewords an error of encoding/json for the author of the JSON: the field, the type it takes, and the value
// it has. into is the type that was decoded. An error that already says so is returned unchanged; other errors are
// wrapped.
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

// mistake is a reworded error.
type mistake struct {
	text string
	err  error
}

func (m *mistake) Error() string { return m.text }
func (m *mistake) Unwrap() error { return m.err }

// maxListed is the maximum number of fields in a message.
const maxListed = 12

// meant suggests the field that an unknown name was probably meant to be. encoding/json does not report the object
// that holds the name, so meant searches the fields of all objects.
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

// names appends the names of all fields that JSON of a type may have, at any depth. seen holds the types already
// visited.
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

// Wrong returns a message for JSON that does not fit a type. The string what names the kind of the value in the
// words of encoding/json, with a number that is out of range: "string", "number 1.5".
func Wrong(t reflect.Type, what string) string {
	wanted := Wanted(t)
	if n, number := strings.CutPrefix(what, "number "); number && !strings.ContainsAny(n, ".eE") && !strings.Contains(wanted, "bits") {
		switch t.Kind() {
		case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64: // a whole number that is too large
			wanted += fmt.Sprintf(" of %d bits", t.Bits())
		}
	}
	return fmt.Sprintf("want %s, and it is a JSON %s", wanted, what)
}

// Wanted returns the JSON that a type takes, such as "a string".
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
