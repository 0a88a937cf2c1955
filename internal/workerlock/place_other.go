//go:build !linux

package workerlock

import "os"

// bootID names this run of this machine's kernel: only Linux has one.
var bootID = func() string { return "" }

func fileID(os.FileInfo) string { return "" }

func remoteFS(string) string { return "" }
