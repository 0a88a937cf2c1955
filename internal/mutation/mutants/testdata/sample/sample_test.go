package sample

import (
	"strings"
	"testing"
)

func TestQuery(t *testing.T) {
	if !strings.Contains(Query(), "WHERE a = 1 AND") {
		t.Error(Query())
	}
}

func TestFew(t *testing.T) {
	if all := Few(); !strings.HasSuffix(all[0], "WHERE c = 1") || !strings.HasSuffix(all[1], "LIMIT 5") {
		t.Error(all)
	}
}

func TestClamp(t *testing.T) {
	if Clamp(5, 3) != 3 || Clamp(1, 3) != 1 {
		t.Error(Clamp(5, 3), Clamp(1, 3))
	}
}

func TestBoth(t *testing.T) {
	if !Both(true, false) || Both(false, false) {
		t.Error("Both")
	}
}
