// Package httpapi is Weaver over HTTP: a handler for programs in any language, browsers and the
// command, and its Go client.
//
//	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: tokens.Authorize})
//	http.Handle("/weaver/", http.StripPrefix("/weaver", api))
//
// The table in routes.go defines the routes of the handler, /openapi.json and the tests.
// docs/http.md is its guide.
//
// Rules for every request:
//
//   - Each route names the access that it needs; New without an Authorize is an error, and
//     access is checked before a body is read.
//   - A GET changes nothing. Routes that change something reject requests that the page of
//     another site sent.
//   - A response without success is a Problem (RFC 9457), also for unknown paths and
//     methods.
//   - Values of tasks are shown only to principals with the access [Payloads]. For all
//     principals they are masked as the tasks say (docs/privacy.md).
//
// The package keeps no state: any number of processes may serve one store. GET /v1/events needs a
// store that keeps events. A program that mounts the API enables that with
// [weaver.Client.KeepEvents], as weaver serve does by itself.
package httpapi
