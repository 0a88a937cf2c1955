package httpapi_test

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
)

// Unusual texts never cause an internal error.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		s := newServer(t, serverOptions{store: st})
		id := s.enqueue().String()
		const draft = `{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}`
		for _, odd := range []string{"%00", "%22%00%22", "%ff", "%ed%a0%80", "%f0%9f%92%a9", "%27", "%25", "%5c", "%22", "-1", "99999999999999999999", strings.Repeat("9", 400)} {
			for _, path := range []string{
				"/v1/tasks?q=", "/v1/tasks?q=key:", "/v1/tasks?q=label.a=", "/v1/tasks?q=input.order=", "/v1/tasks?q=type:", "/v1/tasks?q=created%3E", "/v1/tasks?type=", "/v1/tasks?queue=", "/v1/tasks?state=",
				"/v1/tasks?job=", "/v1/tasks?parent=", "/v1/tasks?after=", "/v1/jobs?name=", "/v1/jobs?after=", "/v1/audit?after=", "/v1/audit?actor=", "/v1/types/", "/v1/artifacts/", "/v1/tasks/", "/v1/jobs/",
				"/v1/tasks/" + id + "/payloads/steps/", "/v1/tasks/" + id + "/logs?attempt=", "/v1/stats?from=", "/v1/stats?by=", "/v1/tasks/" + id + "?wait=",
			} {
				if a := s.get(path + odd); a.status >= 500 {
					t.Errorf("%s: %d %s", a.asked, a.status, a.body)
				}
			}
			if a := s.post("/v1/queues/"+odd+"/pause", nil); a.status >= 500 {
				t.Errorf("%s: %d %s", a.asked, a.status, a.body)
			}
		}
		for _, more := range []string{
			`"idempotency_key":"\u0000"`, `"labels":{"\u0000":"x"}`, `"labels":{"":""}`, `"metadata":{"a":"\u0000"}`, `"queue":"\u0000"`, `"concurrency_key":"\u0000"`, `"concurrency_limit":-1`, `"concurrency_limit":5`,
			`"at":"9999-12-31T23:59:59Z"`, `"at":"0001-01-02T00:00:00Z"`, `"at":"2026-13-01T00:00:00Z"`, `"delay":"2562047h"`, `"delay":"-1h"`, `"timeout":"1ns"`, `"expire_after":"2562047h"`,
			`"max_cost":9223372036854775807`, `"max_cost":9223372036854775808`, `"max_attempts":9223372036854775807`, `"priority":1e3`, `"priority":1.5`,
		} {
			if a := s.post("/v1/tasks", draft+","+more+"}"); a.status >= 500 {
				t.Errorf("%s: %d %s", more, a.status, a.body)
			}
		}
		for _, order := range []string{`"\u0000"`, `"\ud800"`, "\"\xff\"", `1e400`, `-0`, `"` + strings.Repeat(`\ud83d\udca9`, 1000) + `"`} {
			if a := s.post("/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":{"amount":1,"order":`+order+`}}`); a.status >= 500 {
				t.Errorf("%.50s: %d %s", order, a.status, a.body)
			}
		}
		for verb, bodies := range map[string][]string{
			"pause":      {`{"reason":"\u0000"}`, "{\"reason\":\"\xff\"}", `{"reason":"` + strings.Repeat("x", 100_000) + `"}`},
			"signal":     {`{"name":"a\u0000","key":"b","payload":1}`, `{"name":"a","key":"b","payload":"\u0000"}`, `{"name":"","key":"","payload":1}`},
			"unblock":    {`{"input":"\u0000"}`, `{"ask":"\u0000"}`},
			"retry":      {`{"add_attempts":-1}`, `{"add_attempts":9223372036854775807}`, `{"add_cost":-1}`},
			"rerun":      {`{"from":"\u0000"}`, `{"input":"\u0000"}`, `{"idempotency_key":"\u0000"}`},
			"reschedule": {`{"at":"9999-12-31T23:59:59Z"}`, `{"at":"0001-01-02T00:00:00Z"}`},
			"repair":     {`{"input":"\u0000"}`},
		} {
			for _, body := range bodies {
				if a := s.post("/v1/tasks/"+id+"/"+verb, body); a.status >= 500 {
					t.Errorf("%s %.50s: %d %s", verb, body, a.status, a.body)
				}
			}
		}
		if log := s.log.String(); log != "" {
			t.Errorf("the log has failures of the server:\n%.2000s", log)
		}
	})
}
