// Package preview computes the effect of a verb on a task from the task's history:
// the effects that an end without success would undo, and the steps that a rerun
// would take over.
//
// Its functions are pure. The library, the command line, the HTTP API and MCP all
// use them. Package explain writes the sentences; preview does not import it, so
// that the library does not depend on terminal code.
package preview
