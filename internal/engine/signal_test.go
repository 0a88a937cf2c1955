package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSignal()
		took := func() time.Duration {
			begun := time.Now()
			wait(t.Context(), time.Second, s)
			return time.Since(begun)
		}
		s.Set()
		s.Set()
		if d := took(); d != 0 {
			t.Errorf("it slept for %s after Set", d)
		}
		if d := took(); d != time.Second {
			t.Errorf("it slept for %s: two Sets before the look are one", d)
		}
		time.AfterFunc(time.Millisecond, s.Set)
		if d := took(); d != time.Millisecond {
			t.Errorf("it slept for %s, woken after 1ms", d)
		}
	})
}
