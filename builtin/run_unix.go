//go:build unix && !aix

package builtin

// relativeToDir is true: the kernel resolves the program's path after changing to
// the command's directory.
const relativeToDir = true

var alwaysInherited = []string{"PATH", "HOME", "LANG"}
