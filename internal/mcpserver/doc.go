// Package mcpserver lets programs that speak the Model Context Protocol look at the tasks
// of a store, and operate them if they may.
//
// By default it only reads, and shows no values: neither inputs and outputs nor the
// values of steps. Values that it shows are masked as their tasks say. An answer has a
// limited size and says what was left out. What a tool cannot do is an answer of that
// tool, with what to do instead; it does not end the session. Messages of errors are
// shown always, masked like values.
package mcpserver
