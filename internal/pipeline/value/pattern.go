package value

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
)

// CheckPattern returns an error if a text is not a pattern of package path for
// files below a folder.
func CheckPattern(pattern string) error {
	switch {
	case strings.TrimSpace(pattern) == "":
		return errors.New("it is empty")
	case strings.ContainsRune(pattern, 0):
		return errors.New("it contains a NUL character")
	case pattern[0] == '/' || filepath.IsAbs(pattern):
		return errors.New("it is an absolute path, and only files below the command's folder are kept")
	}
	for part := range strings.SplitSeq(pattern, "/") {
		switch part {
		case "", ".", "..":
			return errors.New("a part between slashes is empty, a dot or two dots")
		case "**":
			return errors.New("** is not supported: write */ for each folder, as in */*.csv")
		}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return errors.New("a [ is not closed, or a backslash has nothing behind it")
	}
	return nil
}
