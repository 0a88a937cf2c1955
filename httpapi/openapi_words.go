package httpapi

import (
	_ "embed"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"strings"
	"sync"
)

// The comments of the types and fields that the document has, which a test writes out of the source:
// go test ./httpapi -run TestFieldComments -update.
//
//go:embed openapi_words.json
var fieldComments []byte

// commentOf returns the comments by package, type and field: "task.Task", "task.Task.Queue".
var commentOf = sync.OnceValue(func() (words map[string]string) {
	if err := json.Unmarshal(fieldComments, &words); err != nil {
		panic(err) // the file is part of the program
	}
	return words
})

// commentKey returns the key of a type, or of its field, in the file; "" for a type without a name.
func commentKey(t reflect.Type, field string) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	if name == "" {
		return ""
	}
	key := path.Base(t.PkgPath()) + "." + name
	if field != "" {
		key += "." + field
	}
	return key
}

// described adds the description of a type or a field to a schema.
func described(of node, t reflect.Type, field string) node {
	words := commentOf()[commentKey(t, field)]
	if words == "" {
		return of
	}
	of = maps.Clone(of)
	if typ, ok := of["description"].(string); ok {
		words += " (" + typ + ")"
	}
	of["description"] = words
	return of
}
