package archtest_test

import "testing"

// The same task code runs in a browser tab, so the face and the embedded
// store must build there. Compiling is the test; nothing is run.
func TestBuildsForTheBrowser(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".", "./store/sqlite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run([]string{"GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0"}, "go", "build", name)
			if err != nil {
				t.Errorf("%s does not build for js/wasm: put what the platform lacks behind a build tag, with a js file beside it:\n%v", name, err)
			}
		})
	}
}
