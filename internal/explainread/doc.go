// Package explainread reads from a store what an explanation (package explain, which
// reads nothing) is made of. The command line, the MCP server and the HTTP API explain
// tasks and jobs through it, and so say the same.
package explainread
