// Package dashboard serves Weaver's web interface: what runs, what is stuck, why, and the action that helps.
//
// A Dashboard is an http.Handler that serves its pages and, below the same path, the JSON API of package
// httpapi. It can be mounted under any path:
//
//	http.Handle("/weaver/", http.StripPrefix("/weaver", dash))
//
// All URLs of its pages are relative, so it also works behind a proxy that removes a part of the path.
// It sends nothing to other hosts, needs no inline script or style, and starts no goroutines.
package dashboard
