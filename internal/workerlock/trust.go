package workerlock

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/filelock"
)

// trust refuses the folder if others could remove or replace the locks in it: a lock that is
// gone, or free, would prove workers dead that live. Beside a database the folder may
// belong to the database's owner.
func (l *Folder) trust() error {
	if err := filelock.CheckFolder(filelock.OwnersOf(strings.TrimSuffix(l.dir, ".workers")), l.dir); err != nil {
		return fmt.Errorf("folder for worker locks: %w", err)
	}
	return nil
}
