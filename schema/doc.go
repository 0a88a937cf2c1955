// Package schema describes the inputs and outputs of task types as JSON Schemas (draft 2020-12). Programs without the
// Go types can then show and check them: the command line, an HTTP server, a program in another language.
//
// A worker announces its types in the store when it starts, by one line:
//
//	weaver.Config{Handlers: handlers, Plugins: []weaver.Plugin{schema.Plugin()}}
//
// Any program with the store reads them (weaver.Client.Types), checks an input with [Compile] and [Schema.Validate],
// and enqueues it (DraftOf).
//
// A schema is derived from the Go types as encoding/json sees them; Validate methods do not run. It accepts at least
// everything that Type.WithJSON accepts: null means a zero value, fields may be missing, and unknown fields are
// refused. A value unknown to reflection (interfaces, types with their own decoder) may be anything. Only the case of
// keys is stricter: it is that of the JSON name.
//
// Compiling loads nothing: a $ref must lead to a definition in the schema.
package schema
