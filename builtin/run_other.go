//go:build !unix || aix

package builtin

// relativeToDir is false: the program must be found, with its extension, before it
// starts.
const relativeToDir = false

// Windows programs do not start without SYSTEMROOT.
var alwaysInherited = []string{"PATH", "HOME", "LANG", "SYSTEMROOT", "USERPROFILE"}
