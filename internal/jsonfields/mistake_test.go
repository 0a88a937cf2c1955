package jsonfields_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/jsonfields"
)

type address struct {
	City string `json:"city"`
	Code int8   `json:"code"`
}

type forest []forest

type order struct {
	ID      string             `json:"id"`
	Cents   int                `json:"cents"`
	Rate    float64            `json:"rate"`
	Paid    *bool              `json:"paid"`
	Lines   []address          `json:"lines"`
	Headers map[string]string  `json:"headers"`
	By      map[string]address `json:"by"`
	At      time.Time          `json:"at"`
	Next    *order             `json:"next"`
	Forest  forest             `json:"forest"`
}

func TestMistake(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"cents":"7"}`:                  "cents: want a whole number, and it is a JSON string",
		`{"cents":99999999999999999999}`: "cents: want a whole number of 64 bits, and it is a JSON number 99999999999999999999",
		`{"cents":7.5}`:                  "cents: want a whole number, and it is a JSON number 7.5",
		`{"rate":"x"}`:                   "rate: want a number, and it is a JSON string",
		`{"paid":1}`:                     "paid: want true or false, and it is a JSON number",
		`{"lines":{}}`:                   "lines: want an array of the right values, and it is a JSON object",
		`{"lines":[{"code":300}]}`:       "lines.code: want a whole number of 8 bits, and it is a JSON number 300",
		`{"headers":{"a":["b"]}}`:        "headers: want a string, and it is a JSON array",
		`{"next":{"cents":[]}}`:          "next.cents: want a whole number, and it is a JSON array",
		`"x"`:                            "want an object, and it is a JSON string",
		`{"cetns":7}`:                    `there is no field "cetns" (did you mean "cents"?)`,
		`{"by":{"a":{"citty":7}}}`:       `there is no field "citty" (did you mean "city"?)`,
		`{"euros":7}`:                    `there is no field "euros"; there are id, cents, rate, paid, lines, city, code, headers, by, at, next, forest`,
	} {
		d := json.NewDecoder(strings.NewReader(raw))
		d.DisallowUnknownFields()
		plain := d.Decode(new(order))
		err := jsonfields.Mistake(plain, reflect.TypeFor[order]())
		if err == nil || err.Error() != want || !errors.Is(err, plain) {
			t.Errorf("%s:\n got %v\nwant %s", raw, err, want)
		}
	}
	own := errors.New("cents are negative")
	if err := jsonfields.Mistake(own, reflect.TypeFor[order]()); !errors.Is(err, own) || err.Error() != own.Error() {
		t.Errorf("another error became %v", err)
	}
	if err := jsonfields.Mistake(nil, reflect.TypeFor[order]()); err != nil {
		t.Errorf("no error became %v", err)
	}
}
