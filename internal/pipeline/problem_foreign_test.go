package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline"
)

// Mistakes quote nothing of a file that is not a pipeline.
func TestForeign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		src     string
		foreign bool
	}{
		"passwd":         {"root:x:0:0:SECRET:/root:/bin/bash\ntasks:x:1:1:SECRET::\n", true},
		"shadow":         {"root:$6$SECRET:19000:0:99999:7:::\n", true},
		"a key":          {"-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET==\n-----END", true},
		"environment":    {"API_TOKEN=SECRET\nNAME=x", true},
		"yaml":           {"database:\n  password: SECRET\n  tasks: SECRET", true},
		"json":           {`{"password": "SECRET", "user": 1}`, true},
		"broken yaml":    {"password: [SECRET", true},
		"binary":         {"\x00\x01SECRET\xff", true},
		"empty":          {" \n", false},
		"a pipeline":     {"# x\nnam: SECRET\ntaks:\n  a: {rnu: x}", false},
		"in quotes":      {"'tasks' :\n  a: SECRET", false},
		"indented":       {"---\n# x\n\n  name: x\n  tasks: SECRET", false},
		"of json":        {` { "name": "x", "tasks": SECRET }`, false},
		"another tool's": {"\ufeffjobs:\n  a: SECRET", false},
	} {
		if err := pipeline.Foreign([]byte(c.src)); (err != nil) != c.foreign || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
		if !c.foreign {
			continue
		}
		_, err := include("name: x\ninclude: ../secret", map[string]string{"../secret": c.src})
		e, is := errors.AsType[*pipeline.Error](err)
		if !is {
			t.Errorf("%s is included: %v", name, err)
			continue
		}
		if text := e.Format("x.yaml", []byte("name: x\ninclude: ../secret")); strings.Contains(text, "SECRET") || !strings.Contains(text, "the included file has no tasks") {
			t.Errorf("%s, included: %s", name, text)
		}
	}
}
