// Package page holds the JavaScript of programs in a browser tab: the worker that runs them, and the module by which
// pages speak to them.
package page

import "embed"

// Files are the files and the types of the module, which `weaver browser build` copies beside the program.
//
//go:embed *.js weaver.d.ts
var Files embed.FS
