package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// types are the announced task types, by which drafts of other programs are checked.
type types struct {
	client *weaver.Client

	mu    sync.Mutex
	known map[string]knownType
}

type knownType struct {
	store.AnnouncedType
	read time.Time
}

// typeFresh is how long what was read of a type is used.
const typeFresh = 5 * time.Second

// find returns an announced type; nil: none of this name was announced.
func (t *types) find(ctx context.Context, name string) (*store.AnnouncedType, error) {
	t.mu.Lock()
	k, known := t.known[name]
	t.mu.Unlock()
	if known && time.Since(k.read) < typeFresh {
		return &k.AnnouncedType, nil
	}
	list, err := store.TypesOf(ctx, t.client.Store(), t.client.Namespace(), name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= 10_000 {
		t.known = make(map[string]knownType)
	}
	t.known[name] = knownType{list[0], time.Now()}
	return &list[0], nil
}

// draft makes the draft of a task of an announced type, whose schema allows the input.
func (t *types) draft(ctx context.Context, d *Draft, pointer string) (weaver.Draft, error) {
	typ, err := t.find(ctx, d.Type)
	if err != nil {
		return weaver.Draft{}, err
	}
	if typ == nil {
		p := unknownType.of("No worker has announced the task type %s in the namespace %q: start one that handles it, then send this again.", d.Type, t.client.Namespace())
		p.Errors = []ProblemError{{Pointer: "#" + pointer + "/task_type", Detail: "it is not known"}}
		return weaver.Draft{}, p
	}
	return weaver.NewDraft(d.Type, d.Input, d.options()...), nil
}
