package pipeline

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of pipeline files, for
// editors. What it refuses Parse refuses too; Parse also checks what a
// schema cannot say: needs, cycles, limits that depend on each other.
func Schema() []byte { return slices.Clone(schema) }
