// Package page holds the JavaScript of programs in a browser tab: the worker that runs them, and the module by which
// pages speak to them.
package page

import "embed"

// Files are the files, which `weaver browser build` copies beside the program.
//
//go:embed *.js
var Files embed.FS
