package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOrder buys once through the flaky exchange, finds the purchase again, and sells another one
// that cannot be stored.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		out, err := run(t.Context(), dir, 7, program{})
		if err != nil || out != "bought 0.5 at 100, reference X-1" {
			t.Fatalf("%q, %v", out, err)
		}
	}
	if filled, err := filepath.Glob(filepath.Join(dir, "exchange", "*.json")); err != nil || len(filled) != 1 {
		t.Errorf("filled %v, %v; want one", filled, err)
	}
	if _, err := run(t.Context(), dir, 8, program{closed: true}); err == nil || !strings.Contains(err.Error(), "the vault is closed") {
		t.Errorf("with a closed vault: %v", err)
	}
}
