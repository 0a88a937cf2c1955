package workerlock

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// bootID returns the ID of this boot of the machine, or "" if the kernel has no boot ID.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// fileID identifies a file within this kernel while the file is open.
func fileID(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// remote maps the magic numbers of network file systems to their names. Another machine decides on their locks, so a
// process can lose a lock while it is alive.
var remote = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x01021997: "9P", 0x65735546: "FUSE", 0x00c36400: "Ceph",
}

// remoteFS returns the type of a folder's file system if it is a network file system, else "".
func remoteFS(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return remote[uint32(st.Type)]
}
