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
