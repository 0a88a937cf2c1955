// Package leak checks on every store that a drained engine leaves no goroutine and no open statement behind.
package leak
