package pipeline

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of pipeline files, for editors.
// Parse refuses everything that the schema refuses. Parse also checks rules that a
// schema cannot express: needs, cycles, and limits that depend on each other.
func Schema() []byte { return slices.Clone(schema) }
