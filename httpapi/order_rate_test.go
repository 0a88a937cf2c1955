package httpapi

import (
	"strconv"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := rate{most: 60, clients: make(map[string]spent)}
	taken := func(from, to time.Duration) (n int) { // one request each 100 ms
		for at := from; at < to; at += 100 * time.Millisecond {
			if r.take("a", start.Add(at)) == 0 {
				n++
			}
		}
		return n
	}
	if n := taken(0, time.Minute); n != 60 {
		t.Errorf("%d requests in the first minute", n)
	}
	if retry := r.take("a", start.Add(30*time.Second)); retry < 30 || retry > 32 {
		t.Errorf("the retry after 30 s is %d s", retry)
	}
	if r.take("a", start.Add(30*time.Second+time.Duration(r.take("a", start.Add(30*time.Second)))*time.Second)) != 0 {
		t.Error("a client that waited as it was told is refused")
	}
	if n := taken(time.Minute, 10*time.Minute); n < 9*50 || n > 9*60 {
		t.Errorf("%d requests in nine minutes", n)
	}
	if r.take("b", start) != 0 {
		t.Error("another client is refused")
	}
	if n := taken(20*time.Minute, 21*time.Minute); n != 60 {
		t.Errorf("%d requests after a pause", n)
	}
	for i := range 3 * rateClients {
		r.take(strconv.Itoa(i), start)
	}
	if len(r.clients) > rateClients {
		t.Errorf("%d clients are counted", len(r.clients))
	}
	off := rate{}
	if off.take("a", start) != 0 || off.clients != nil {
		t.Error("a rate of 0 is a limit")
	}
}
