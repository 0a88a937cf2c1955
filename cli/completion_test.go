package cli_test

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/cli"
)

func TestCompleteWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"ta", "task"},
		{"re", "retry replay"},
		{"task re", "retry rerun repair reschedule resume"},
		{"--namespace x job ", "ls show retry cancel delete"},
		{"task ls --st", "--store --state"},
		{"task ls --state f", "failed"},
		{"task ls --state=f", "--state=failed"},
		{"task ls --state = f", "failed"}, // as bash splits it
		{"task ls --state =", "pending ready running succeeded failed cancelled blocked"},
		{"task ls --state failed --state bl", "blocked"},
		{"job ls --state ", "running blocked succeeded failed cancelled"},
		{"-o ", "text json"},
		{"task ls -o j", "json"},
		{"worker --handlers ", "app builtin"},
		{"completion ", "bash zsh fish"},
		{"help ta", "task"},
		{"help task unb", "unblock"},
		{"run -- --f", ""},
		{"run --fr", "--fresh --from"},
		{"run ", ""},          // a file
		{"why 01K", ""},       // an ID
		{"--nonesuch x ", ""}, // x is not a command
		{"task nonesuch --", "--help --version --store --namespace --output --no-color --delivery --codec-key --bucket"},
		{"__com", ""},
		{"--deli", "--delivery"},
	} {
		got := strings.Join(cli.CompleteWords(strings.Split(tt.line, " ")...), " ")
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.line, got, tt.want)
		}
	}
	if got := cli.CompleteWords(); len(got) < 10 || got[0] != "run" {
		t.Errorf("no words: got %v, want the commands", got)
	}
}
