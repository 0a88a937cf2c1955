package main

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/codec/aesgcm"
)

// sealedNoop is noop with a codec.
func sealedNoop(ctx context.Context, n int) (float64, error) {
	key, err := aesgcm.NewKey("k1")
	if err != nil {
		return 0, err
	}
	c, err := aesgcm.New(key)
	if err != nil {
		return 0, err
	}
	h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
	return throughputOf(ctx, n, inFile(full), weaver.Config{Handlers: []weaver.Handler{h}, Codec: c}, func(i int) weaver.Draft { return noopType.With(i) })
}

func (r *report) codec(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return noop(ctx, r.n, inFile(full)) },
		func() (float64, error) { return sealedNoop(ctx, r.n) },
	)
	if err != nil {
		return err
	}
	r.row("no-op tasks/s with a codec, FULL", f[1].String(), "without "+f[0].String(), ratio(f[1].median()/f[0].median()))
	return nil
}
