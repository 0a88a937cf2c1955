package aesgcm_test

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/codec/aesgcm"
)

// A program passes the codec to its engines and clients: weaver.Config{Codec: c}. The last key of the file seals.
func ExampleRead() {
	file := strings.NewReader(`# weaver codec key k1 >> keys
k1 MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=
k2 YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI=
`)
	c, err := aesgcm.Read(file)
	if err != nil {
		panic(err)
	}
	sealed, err := c.Seal([]byte(`"secret"`), []byte("where it is kept"))
	if err != nil {
		panic(err)
	}
	plain, err := c.Open(sealed, []byte("where it is kept"))
	fmt.Println(sealed.Key, string(plain), err)
	// Output: k2 "secret" <nil>
}
