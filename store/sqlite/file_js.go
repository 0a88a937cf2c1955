package sqlite

import "github.com/goweaver/weaver/store/sqlite/internal/opfs"

// fileID distinguishes an open file from one that was deleted. Nothing replaces a file while it is open.
type fileID struct{ names uint64 }

func identify(path string) (fileID, bool) {
	return fileID{names: 1}, opfs.IsOpen(path)
}

func isElsewhere(path string, _ fileID) bool { return opfs.IsGone(path) }
