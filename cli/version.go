package cli

import (
	"context"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run implements the verb.
func (versionCmd) Run(_ context.Context, s *session) error {
	if s.json() {
		return s.writeJSON(map[string]any{"name": s.app.Name, "version": s.app.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	s.printf("%s %s (%s, %s/%s)\n", s.app.Name, s.app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// buildVersion is what the go command recorded of the main module.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown version)"
	}
	return info.Main.Version
}
