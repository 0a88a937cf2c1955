//go:build unix && !linux && !aix

package procgroup

import "os"

// newTable opens a temporary file that has no name any more.
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
