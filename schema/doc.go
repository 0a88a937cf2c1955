// Package schema describes the inputs and outputs of task types as JSON Schemas (draft
// 2020-12), so that programs without the Go types can show and check them: the command
// line, an HTTP server, a program in another language.
//
// A worker announces its types in the store when it starts, by one line:
//
//	weaver.Config{Handlers: handlers, Plugins: []weaver.Plugin{schema.Plugin()}}
//
// Any program of the store reads them (weaver.Client.Types), checks an input by
// [Compile] and [Schema.Validate], and enqueues it (weaver.DraftOf).
//
// A schema is made from the Go types as encoding/json sees them and from nothing else:
// Validate methods do not run. It accepts what Type.WithJSON accepts, at least: null
// stands for a zero value, fields may be missing, fields that the type does not have are
// refused, and what reflection cannot know (interfaces, types that decode themselves) may
// be anything. Only the case of keys is stricter: it is that of the JSON name.
//
// A schema that is checked loads nothing: a $ref leads to its own definitions or is an
// error.
package schema
