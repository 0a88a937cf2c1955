//go:build unix && !aix

package builtin

// relativeToDir: the kernel resolves the program's path after it has changed
// to the command's directory.
const relativeToDir = true

var alwaysInherited = []string{"PATH", "HOME", "LANG"}
