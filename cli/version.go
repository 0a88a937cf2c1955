package cli

import (
	"context"
	"fmt"
	"runtime"
)

type versionCmd struct{}

// Run implements the verb.
func (versionCmd) Run(_ context.Context, s *session) error {
	if s.json() {
		return s.writeJSON(map[string]any{"name": s.app.Name, "version": s.app.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	s.printf("%s\n", versionLine(s.app))
	return nil
}

// versionVar is the kong variable with the version line.
const versionVar = "version_line"

func versionLine(app App) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", app.Name, app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
