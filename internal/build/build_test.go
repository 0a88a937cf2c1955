package build_test

import (
	"runtime/debug"
	"testing"

	"github.com/goweaver/weaver/internal/build"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version string
		vcs     []debug.BuildSetting
		want    string
	}{
		{"v1.2.3", nil, "v1.2.3"},
		{"v1.2.4-0.20261120120000-1a2b3c4d5e6f+dirty", []debug.BuildSetting{{Key: "vcs.revision", Value: "1a2b3c4d5e6f7890"}}, "v1.2.4-0.20261120120000-1a2b3c4d5e6f+dirty"},
		{"(devel)", nil, "(devel)"},
		{"", nil, "(unknown version)"},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "1a2b3c4d5e6f7890"}}, "(devel) 1a2b3c4d5e6f"},
		{
			"(devel)",
			[]debug.BuildSetting{{Key: "vcs.revision", Value: "1a2b"}, {Key: "vcs.time", Value: "2026-11-20T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}},
			"(devel) 1a2b of 2026-11-20T12:00:00Z, modified",
		},
	} {
		if got := build.VersionOf(&debug.BuildInfo{Main: debug.Module{Version: tt.version}, Settings: tt.vcs}); got != tt.want {
			t.Errorf("%q, %v: got %q, want %q", tt.version, tt.vcs, got, tt.want)
		}
	}
}
