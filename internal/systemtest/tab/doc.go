// Package tab tests programs of Weaver in a tab of Chromium, and of Firefox in full size: test binaries, such as the
// conformance suite of stores on the browser's private file system, and a program whose tabs are reloaded, closed,
// frozen and killed.
package tab
