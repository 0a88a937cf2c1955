// Package preview tells from the history of a task what a verb would do to it, or its end:
// which effects would be undone, which steps a rerun would take over.
//
// Its functions are pure, and the one source of these answers for the library, the command
// line, the HTTP API and MCP. Package explain has the sentences; it is not used here, so
// that the library needs nothing that only terminals do.
package preview
