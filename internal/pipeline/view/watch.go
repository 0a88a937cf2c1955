package view

import (
	"fmt"
	"time"
)

// watch formats an elapsed time: "0:42", "1:02:03".
func watch(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
