// Package tasks has the task types of the test.
package tasks

import "github.com/goweaver/weaver"

// Types in variables of a package, a function and a struct.
var (
	Handled  = weaver.Define[int, int]("vet.test.handled.v1")
	Lonely   = weaver.Define[int, int]("vet.test.lonely.v1") // defined alone
	Enqueued = weaver.Define[int, int]("vet.test.enqueued.v1")
	Called   = weaver.Define[int, int]("vet.test.called.v1")
	Orphan   = weaver.Define[int, int]("vet.test.orphan.v1")
	Followed = weaver.Define[int, int]("vet.test.followed.v1") // into a map
)

// Set is a struct of types.
type Set struct{ In, Out *weaver.Type[int, int] }

// Both has one type that is handled and one that is not.
func Both() Set {
	return Set{In: weaver.Define[int, int]("vet.test.field.v1"), Out: weaver.Define[int, int]("vet.test.unhandled.v1")}
}

// ByName has a type elsewhere.
var ByName = map[string]*weaver.Type[int, int]{"followed": Followed, "direct": weaver.Define[int, int]("vet.test.direct.v1")}
