//go:build !unix || aix

package builtin

// relativeToDir: the program must be found, and get its extension, before it
// is started.
const relativeToDir = false

// Windows programs do not start without SYSTEMROOT.
var alwaysInherited = []string{"PATH", "HOME", "LANG", "SYSTEMROOT", "USERPROFILE"}
