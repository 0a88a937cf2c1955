package workerlock

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/filelock"
)

// trust refuses the folder if other users could remove or replace its locks: a lock that is gone or free would prove
// live workers dead. A folder next to a database may belong to the database's owner.
func (l *Folder) trust() error {
	if err := filelock.CheckFolder(filelock.OwnersOf(strings.TrimSuffix(l.dir, ".workers")), l.dir); err != nil {
		return fmt.Errorf("folder for worker locks: %w", err)
	}
	return nil
}
