// Package build says what a program was built from.
package build

import "runtime/debug"

// Version is what the go command recorded of the main module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	return VersionOf(info)
}

// VersionOf is the main module's version; where that has none, as in a build from
// a checkout, the revision, if the go command knew it.
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
