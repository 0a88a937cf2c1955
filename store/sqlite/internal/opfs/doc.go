// Package opfs is SQLite's file layer in a browser: files of the origin private file system (OPFS), which only
// dedicated workers of a secure context can open for synchronous access. It is empty on other systems.
//
// A worker opens a file exclusively: no other tab can open it until the worker ends or closes it. All connections of
// the worker share one handle, and the file layer has the locks between them. There is no shared memory, so databases
// use a rollback journal.
package opfs
