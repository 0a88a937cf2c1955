// Package httpcontract checks an HTTP API against its OpenAPI document in tests: an answer must not contain anything
// that the document does not declare. It knows only the document, not the server.
//
//	contract, err := httpcontract.Read(document)
//	client := &http.Client{Transport: contract.Transport(t, http.DefaultTransport, "")}
//
// Every answer must have a status, headers, a media type and a body that the document declares for its operation. A
// body must not have a property that its schema does not name: the document lets servers add some, but tests do not.
// A request that succeeds must also be declared.
package httpcontract
