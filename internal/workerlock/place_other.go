//go:build !linux

package workerlock

import "os"

// bootID returns "": only Linux has boot IDs.
var bootID = func() string { return "" }

func fileID(os.FileInfo) string { return "" }

func remoteFS(string) string { return "" }
