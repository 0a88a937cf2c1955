// Package wire holds the requests, answers and problems of the HTTP API as Go values,
// for the server (package httpapi) and its client (package httpapi/client). Both export
// them by aliases. It imports neither, and serves and sends nothing.
package wire
