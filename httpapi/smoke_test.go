package httpapi_test

import (
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store/memstore"
)

func TestSmoke(t *testing.T) {
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = httpapi.New(httpapi.Config{Client: c, Authorize: httpapi.Open(httpapi.Principal{Name: "t", Access: httpapi.Full})})
	if err != nil {
		t.Fatal(err)
	}
}
