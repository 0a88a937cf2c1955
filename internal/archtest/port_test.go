package archtest_test

import (
	"reflect"
	"testing"

	"github.com/goweaver/weaver/store"
)

// maxPort keeps the port small enough to implement in a week: what is new is a field or
// a command of what is there, or an interface that a store may do without.
const maxPort = 20

func TestThePortIsSmall(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[store.Store]().NumMethod(); n > maxPort {
		t.Errorf("store.Store has %d methods, at most %d are wanted", n, maxPort)
	}
}
