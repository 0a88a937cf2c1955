// Package httpapi is Weaver over HTTP: a handler that programs in any language, a
// browser and the command use. Its Go client is package client.
//
//	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: tokens.Authorize})
//	http.Handle("/weaver/", http.StripPrefix("/weaver", api))
//
// The table in routes.go is all of it: what the handler serves, what
// /openapi.json says and what the tests hold it to. docs/http.md is its guide.
//
// What holds for every request:
//
//   - Each route names the access that it needs; New without an Authorize is an error,
//     and who may do what is decided before a body is read.
//   - A GET changes nothing. Whatever changes something refuses requests that another
//     site's page sent.
//   - An answer that is no success is a Problem (RFC 9457), also those of wrong paths
//     and methods.
//   - Values of tasks are shown to principals with the access [Payloads] only, and
//     masked as the tasks say (docs/privacy.md) for all of them.
//
// It keeps nothing itself: any number of processes may serve one store. GET /v1/events
// needs a store that keeps events: a program that mounts the API begins that with
// [weaver.Client.KeepEvents], as weaver serve does by itself.
package httpapi
