//go:build !unix

package cli

// runAsInit does nothing here, where no process inherits those of others.
func runAsInit() (code int, done bool) { return 0, false }
