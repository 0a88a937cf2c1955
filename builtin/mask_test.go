package builtin_test

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goweaver/weaver/builtin"
)

func TestMask(t *testing.T) {
	t.Parallel()
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const long = "a long secret of more than fifty-seven bytes, so that base64 breaks its line"
	wrapped := std(long)[:76] + "\n" + std(long)[76:]
	for name, c := range map[string]struct {
		secrets []string
		in      []string
		want    string
	}{
		"none":                      {nil, []string{"hunter2"}, "hunter2"},
		"whole":                     {[]string{"hunter2"}, []string{"a hunter2 b\nhunter2"}, "a *** b\n***"},
		"between two blocks":        {[]string{"hunter2"}, []string{"a hun", "ter2 b"}, "a *** b"},
		"byte by byte":              {[]string{"hunter2"}, strings.Split("a hunter2 b", ""), "a *** b"},
		"a beginning":               {[]string{"hunter2"}, []string{"hunter", " hunt", "er"}, "hunter hunter"},
		"a beginning in itself":     {[]string{"aab!"}, []string{"aaab!"}, "a***"},
		"between two lines":         {[]string{"hunter2-hunter2"}, []string{"hunter2-\nhunter2 and hunter2-\r\n", "hunter2"}, "*** and ***"},
		"no lines of a short one":   {[]string{"1234"}, []string{"12\n34"}, "12\n34"},
		"of several lines":          {[]string{"first line\nsecond line\n"}, []string{"x first line\r\nsecond line y"}, "x *** y"},
		"a line of several":         {[]string{"first line\nsecond line\nend"}, []string{"x second line y end"}, "x *** y end"},
		"spaces around":             {[]string{"  hunter2\n"}, []string{"hunter2"}, "***"},
		"the longest":               {[]string{"hunter", "hunter2000"}, []string{"hunter2000 hunter2 hunter20", "00"}, "*** ***2 ***"},
		"overlapping":               {[]string{"abcd", "cdef"}, []string{"xabcdefx"}, "x***x"},
		"overlapping in blocks":     {[]string{"abcd", "cdef"}, []string{"xabcd", "efx", "abc", "d", "e", "gx"}, "x***x***egx"},
		"side by side":              {[]string{"abcd"}, []string{"abcdabcd"}, "******"},
		"base64":                    {[]string{"hunter2"}, []string{std("hunter2")}, "***"},
		"base64 in blocks":          {[]string{"hunter2"}, []string{std("hunter2")[:5], std("hunter2")[5:]}, "***"},
		"base64 for URLs":           {[]string{"??>>secret"}, []string{base64.RawURLEncoding.EncodeToString([]byte("??>>secret"))}, "***"},
		"base64 of several lines":   {[]string{long}, []string{wrapped}, "***"},
		"letters that are no ASCII": {[]string{"größe-µ"}, []string{"x größe-", "\xc2", "\xb5 y"}, "x *** y"},
	} {
		if got := builtin.Mask(c.secrets, c.in...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Within a longer encoded text: user:password of basic authentication.
	for before := range 5 {
		all := std(strings.Repeat("u", before) + ":hunter2-secret" + strings.Repeat("!", before))
		if got := builtin.Mask([]string{"hunter2-secret"}, all); !strings.Contains(got, "***") || len(got) > len(all)-12 {
			t.Errorf("%d bytes before: %s of %s", before, got, all)
		}
	}
}

// The result does not depend on the blocks, and little is held back.
func TestMaskBlocks(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	letters := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("aab\nc"[rnd.IntN(5)])
		}
		return b.String()
	}
	for range 2000 {
		var secrets []string
		for range 1 + rnd.IntN(3) {
			secrets = append(secrets, "a"+letters(2+rnd.IntN(10))+"b")
		}
		stream := letters(rnd.IntN(60)) + secrets[0] + letters(rnd.IntN(60))
		var pieces []string
		for rest := stream; rest != ""; {
			n := 1 + rnd.IntN(min(len(rest), 9))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole := builtin.Mask(secrets, stream)
		if got := builtin.Mask(secrets, pieces...); got != whole {
			t.Fatalf("%q in pieces %q: %q, want %q", secrets, pieces, got, whole)
		}
		for _, s := range secrets {
			if strings.Contains(whole, s) {
				t.Fatalf("%q is in %q", s, whole)
			}
		}
	}
	for _, stream := range []string{strings.Repeat("a", 1e5), strings.Repeat("a\n", 1e5), strings.Repeat("\r\n", 1e5)} {
		if n := builtin.Held([]string{strings.Repeat("a", 100)}, stream); n > 700 {
			t.Errorf("%d bytes are held back of %.9q…", n, stream)
		}
	}
}

func TestParseEnv(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "",
		"A=1\nB=2":                               "A=1|B=2",
		"\ufeffA=1\r\n\r\n# c\r\nexport B=2\r\n": "A=1|B=2",
		"A=x # c\nB=x#y\nC=#\n  D= x y ":         "A=x|B=x#y|C=#|D=x y",
		"A=\nB=''\nC=\"\"":                       "A=|B=|C=",
		`A="a\nb \"q\" \$X \\ \w" # c`:           `A=a` + "\n" + `b "q" $X \ \w`,
		`A='a\n $X "q"'`:                         `A=a\n $X "q"`,
		"A=\"one\ntwo\"\nB='x\n#y'\nC=3":         "A=one\ntwo|B=x\n#y|C=3",
		"A=$B ${C}":                              "A=$B ${C}",
		"A=it's\nB=1":                            "A=it's|B=1",
		"A=b=c":                                  "A=b=c",
		"A=1\nA=2":                               "A=1|A=2",
	} {
		got, err := builtin.ParseEnv(text)
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"A=1\n\ngeheim":         "line 3: no NAME=VALUE",
		"export A":              "line 1: no NAME=VALUE",
		"A =geheim":             "line 1: what stands before =",
		"=geheim":               "line 1: what stands before =",
		"A B=geheim":            "line 1: what stands before =",
		"A=\"x\ny\"\nB='geheim": "line 3: the value of B: its quote ' is not closed",
		"A=1\nB=\"ge\"heim":     "line 2: the value of B: something follows its closing quote",
		"A=ge\x00heim":          "line 1: the value of A: a NUL character",
	} {
		if _, err := builtin.ParseEnv(text); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "heim") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseEnv(f *testing.F) {
	f.Add("A=1\n#c\nexport B='x\ny' # z\nC=\"\\n\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := builtin.ParseEnv(text)
		for _, p := range pairs {
			if err != nil || strings.HasPrefix(p, "=") || strings.Contains(p, "\x00") {
				t.Errorf("%q: %q, %v", text, p, err)
			}
		}
	})
}
