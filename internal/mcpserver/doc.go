// Package mcpserver serves the Model Context Protocol: programs can inspect the tasks of a store and, if allowed,
// operate them.
//
// By default it only reads and shows no values: no inputs, outputs or step values. Values that it shows are masked as
// their tasks define. An answer has a limited size and states omissions. A failing tool returns its error with a
// suggestion as its answer; the session continues. Error messages are always shown, masked like values.
package mcpserver
