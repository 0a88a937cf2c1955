package browser

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/schema"
)

// announce makes the types of the program known before a page can ask for them. The engine announces them only once
// it runs, and a page that had just been opened could be refused.
func announce(ctx context.Context, eng *weaver.Engine) error {
	var types []weaver.AnyType
	known := make(map[string]bool)
	for _, h := range eng.Handlers() {
		if !known[h.Name()] {
			known[h.Name()] = true
			types = append(types, h.Type())
		}
	}
	return schema.Announce(ctx, eng, types...)
}
