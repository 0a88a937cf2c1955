// Package build reports the version of the running program.
package build

import "runtime/debug"

// Version returns the recorded version of the main module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	return VersionOf(info)
}

// Program returns the path of the main package, for example github.com/acme/shop/cmd/worker.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "" {
		return "(unknown program)"
	}
	return info.Path
}

// VersionOf returns the main module's version. If there is no version, as in a build from a checkout, it returns the
// revision, if known.
func VersionOf(info *debug.BuildInfo) string {
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
