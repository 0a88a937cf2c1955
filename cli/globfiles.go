package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
)

// globFiles lists the files of a directory that match a pattern, sorted and relative to the directory. An absolute
// pattern returns absolute paths. It omits folders and, like a shell, matches a leading dot only by a dot.
func globFiles(dir, pattern string) ([]string, error) {
	whole := pattern
	if !filepath.IsAbs(pattern) {
		whole = filepath.Join(escapeGlob(dir), pattern)
	}
	found, err := filepath.Glob(whole)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, path := range found {
		if info, err := os.Stat(path); err != nil || info.IsDir() || hidden(whole, path) {
			continue
		}
		if !filepath.IsAbs(pattern) {
			if path, err = filepath.Rel(dir, path); err != nil {
				return nil, err
			}
		}
		files = append(files, path)
	}
	slices.Sort(files)
	return files, nil
}

// escapeGlob returns a pattern that matches only the given path.
func escapeGlob(path string) string {
	var b strings.Builder
	for _, r := range path {
		switch {
		case strings.ContainsRune("*?[", r):
			b.WriteString("[" + string(r) + "]")
		case r == '\\' && runtime.GOOS != "windows":
			b.WriteString(`\\`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a name in path begins with a dot where the pattern does not. Both have the same number of
// names.
func hidden(pattern, path string) bool {
	patterns, names := strings.Split(pattern, string(filepath.Separator)), strings.Split(path, string(filepath.Separator))
	for i := range min(len(patterns), len(names)) {
		if strings.HasPrefix(names[i], ".") && !strings.HasPrefix(patterns[i], ".") {
			return true
		}
	}
	return false
}

// nodes returns a hash of the names of all nodes, or "" if they do not depend on files.
func (f *pipelineFile) nodes() string {
	if !f.Globs() {
		return ""
	}
	sum := sha256.New()
	for i := range f.Tasks {
		_, _ = fmt.Fprintf(sum, "%q\n", f.Tasks[i].Name)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// sameNodes reports whether a job with the same definition has the current nodes of the file.
func (f *pipelineFile) sameNodes(j *weaver.JobInfo) bool { return j.Meta[metaNodes] == f.nodes() }
