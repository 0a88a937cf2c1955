// Package leak checks that an engine that has drained leaves no goroutine and
// no open statement behind, on every store.
package leak
