//go:build unix && !linux && !aix

package procgroup

import "os"

// newTable creates a temporary file and removes its name.
func newTable() (*os.File, error) {
	f, err := os.CreateTemp("", "weaver-guard-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		shut(f)
		return nil, err
	}
	return f, nil
}
