//go:build !unix && !js

package sqlite

// fileID distinguishes a file from all existing files. On this system an open file cannot be
// deleted or replaced.
type fileID struct{ names uint64 }

func identify(string) (fileID, bool) { return fileID{}, false }

func isElsewhere(string, fileID) bool { return false }
