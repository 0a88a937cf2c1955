package opfs

import (
	"syscall/js"

	"github.com/goweaver/weaver/internal/promise"
)

// lookEvery is the time in milliseconds between two looks for the names of the open files. Clearing the site's data
// deletes the names; the handles continue to work, but later writes are lost when the worker ends.
const lookEvery = 500

// look and lost are made when the program starts, like turn.
var look, lost js.Func

func init() {
	if js.Global().Get("setInterval").IsUndefined() {
		return
	}
	lost = js.FuncOf(func(_ js.Value, args []js.Value) any { // the name, and the reason
		if promise.Is(promise.Of(args[1]), "NotFoundError") {
			layer.gone.Store(args[0].String(), true)
		}
		return nil
	})
	look = js.FuncOf(func(js.Value, []js.Value) any {
		layer.open.Range(func(name, at any) bool {
			p := at.(place)
			// Nothing is to be done with the handle that is found.
			_, _ = promise.Try(func() js.Value {
				return p.dir.Call("getFileHandle", p.base).Call("catch", lost.Call("bind", nil, name))
			})
			return true
		})
		return nil
	})
	js.Global().Call("setInterval", look, lookEvery)
}

// place is where an open file has its name.
type place struct {
	dir  js.Value
	base string
}

// IsOpen reports whether the worker has a file open.
func IsOpen(name string) bool {
	_, ok := layer.open.Load(name)
	return ok
}

// IsGone reports whether a file was deleted while it was open. It is noticed within a second.
func IsGone(name string) bool {
	_, ok := layer.gone.Load(name)
	return ok
}
