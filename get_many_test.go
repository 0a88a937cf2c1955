package weaver_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store/memstore"
)

func TestGetMany(t *testing.T) {
	t.Parallel()
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := weaver.NewClient(c.Store(), weaver.ClientConfig{Namespace: "other"})
	if err != nil {
		t.Fatal(err)
	}
	typ := weaver.Define[int, weaver.None]("acme.many.read.v1")
	var ids []weaver.TaskID
	for _, in := range []*weaver.Client{c, c, other} {
		h, err := typ.Enqueue(t.Context(), in, 1)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.ID())
	}
	got, err := c.GetMany(t.Context(), ids...)
	if err != nil || len(got) != 2 || string(got[0].Input) != "1" {
		t.Errorf("GetMany of two tasks, and one of another namespace: %+v, %v", got, err)
	}
	many := slices.Repeat(ids[:1], 1000)
	if got, err = c.GetMany(t.Context(), many...); err != nil || len(got) == 0 {
		t.Errorf("GetMany of 1,000: %d tasks, %v", len(got), err)
	}
	if got, err = c.GetMany(t.Context(), append(many, ids[1])...); !errors.Is(err, weaver.ErrInvalidOption) || got != nil {
		t.Errorf("GetMany of 1,001: %d tasks, %v; want %v", len(got), err, weaver.ErrInvalidOption)
	}
}

func TestQueryRelative(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "state:failed word": false, "created>2026-01-02": false, "created<2026-01-02T03:04:05Z": false, `"created>-1h"`: false,
		"created>-1h": true, "created<-2d": true, "state:failed created>2026-01-02 created<-90m word": true, "created>-0s": true,
	} {
		q, err := ops.ParseQuery(text, time.Now())
		if err != nil || q.Relative() != want || q.And(weaver.Filter{Queue: "x"}).Relative() != want {
			t.Errorf("%q has a time ago: %v (%v), want %v", text, q.Relative(), err, want)
		}
	}
}

func TestQueryAsksForValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "state:failed key:a words": false, "input.a=1": true, `"words" output.a.b="x"`: true,
	} {
		q, err := ops.ParseQuery(text, time.Now())
		if err != nil || q.AsksForValues() != want {
			t.Errorf("%q asks for values: %v (%v), want %v", text, q.AsksForValues(), err, want)
		}
	}
}
