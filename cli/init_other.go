//go:build !unix

package cli

// runAsInit does nothing: this system has no process that adopts orphans.
func runAsInit() (code int, done bool) { return 0, false }
