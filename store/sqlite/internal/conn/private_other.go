//go:build !unix

package conn

import "github.com/ncruces/go-sqlite3/vfs"

func createBeside(*vfs.Filename, vfs.OpenFlag) {}
