//go:build windows || js

package blob

// syncFolder does nothing on systems where folders cannot be synced.
func syncFolder(string) error { return nil }
