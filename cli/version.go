package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
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

// versionVar is the variable of the command line that has the version line.
const versionVar = "version_line"

func versionLine(app App) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", app.Name, app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is what the go command recorded of the main module.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	return versionOf(info)
}

// versionOf is the main module's version; where that has none, as in a build from
// a checkout, the revision, if the go command knew it.
func versionOf(info *debug.BuildInfo) string {
	const none = "(devel)"
	switch info.Main.Version {
	case none:
	case "":
		return "(unknown version)"
	default:
		return info.Main.Version
	}
	vcs := make(map[string]string)
	for _, s := range info.Settings {
		vcs[s.Key] = s.Value
	}
	revision := vcs["vcs.revision"]
	if revision == "" {
		return none
	}
	version := none + " " + revision[:min(len(revision), 12)]
	if at := vcs["vcs.time"]; at != "" {
		version += " of " + at
	}
	if vcs["vcs.modified"] == "true" {
		version += ", modified"
	}
	return version
}
