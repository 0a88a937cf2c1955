//go:build !unix

package sqlite

func isQuota(error) bool { return false }
