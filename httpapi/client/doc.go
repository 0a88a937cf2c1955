// Package client is the Go client of the HTTP API that package httpapi serves: it
// enqueues, reads and operates tasks of a server, and waits for them. It links no server.
package client
