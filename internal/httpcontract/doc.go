// Package httpcontract holds an HTTP API to its OpenAPI document in tests: what the
// document does not declare, no answer may have. It knows a document only, not what
// serves it.
//
//	contract, err := httpcontract.Read(document)
//	client := &http.Client{Transport: contract.Transport(t, http.DefaultTransport, "")}
//
// Every answer that comes through the transport must have a status, headers, a media
// type and a body that the document declares for its operation. A body has no property
// that its schema does not name: the document lets servers add some, and tests do not.
// A request that succeeds must be one that the document declares, too.
package httpcontract
