package sqlite

import "sync"

var files struct {
	mu    sync.Mutex
	alone map[string]*alone
}

// aloneWith returns the workers of a file, of all DBs of this process.
func aloneWith(name string) *alone {
	files.mu.Lock()
	defer files.mu.Unlock()
	if files.alone == nil {
		files.alone = make(map[string]*alone)
	}
	if files.alone[name] == nil {
		files.alone[name] = &alone{here: make(map[worker]*DB)}
	}
	return files.alone[name]
}
