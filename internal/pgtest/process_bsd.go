//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing here: the watchdog ends the process.
func dieWithParent(*syscall.SysProcAttr) {}
