package archtest_test

import (
	"reflect"
	"testing"

	"github.com/goweaver/weaver/store"
)

// maxPort keeps the port small enough to implement in a week: add a field or a command to an existing method, or an
// optional interface.
const maxPort = 20

func TestThePortIsSmall(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[store.Store]().NumMethod(); n > maxPort {
		t.Errorf("store.Store has %d methods, at most %d are wanted", n, maxPort)
	}
}
