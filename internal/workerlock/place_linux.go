package workerlock

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// bootID names this run of this machine's kernel; "": it has no name.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// fileID identifies a file in this kernel, while it is open.
func fileID(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// remote are the file systems, by their magic numbers, whose locks other machines
// decide on: a lock can be lost while its process lives.
var remote = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x01021997: "9P", 0x65735546: "FUSE", 0x00c36400: "Ceph",
}

// remoteFS returns the kind of file system of a folder if it is a remote one.
func remoteFS(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return remote[uint32(st.Type)]
}
