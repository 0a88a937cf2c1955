package main

import "testing"

func TestGreet(t *testing.T) {
	if got := greet("Ada"); got != "hello, Ada" {
		t.Errorf("greet says %q", got)
	}
}
