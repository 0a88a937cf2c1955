//go:build !windows && !js

package blob

import "os"

// syncFolder makes the entries of a folder durable.
func syncFolder(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return f.Sync()
}
