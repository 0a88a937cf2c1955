//go:build !unix

package conn

func isQuota(error) bool { return false }
