package httpapi

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/privatefile"
)

// Tokens holds the SHA-256 hashes of the tokens of a file, one per line:
//
//	ci submit 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
//
// with the name of the principal, its access (ParseAccess), and the hash in hexadecimal digits. A
// line that begins with # is a comment.
//
// A token is long and random (NewToken), so its hash needs no further protection.
type Tokens struct {
	list []tokenLine
	key  []byte // signs cookies, together with the hash of their token
}

type tokenLine struct {
	Principal
	hash [sha256.Size]byte
}

// TokensOption is an option of LoadTokens and ReadTokens.
type TokensOption func(*Tokens)

// CookieKey sets the key that signs the cookies of /login, together with the token of the login.
// Several servers behind one address need the same key. It has at least 32 bytes. Default: a random
// key, so that a restart of the server ends its logins.
func CookieKey(key []byte) TokensOption { return func(t *Tokens) { t.key = key } }

// LoadTokens reads a token file. It rejects a file that other users can write.
func LoadTokens(file string, opts ...TokensOption) (*Tokens, error) {
	if _, err := privatefile.Check(file); err != nil {
		return nil, err
	}
	f, err := plainfile.OpenStream(file)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	defer func() { _ = f.Close() }()
	t, err := ReadTokens(f, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// ReadTokens reads tokens in the format of LoadTokens. The error lists all mistakes with their
// lines; it contains no text that may be a token.
func ReadTokens(r io.Reader, opts ...TokensOption) (*Tokens, error) {
	t := new(Tokens)
	for _, o := range opts {
		o(t)
	}
	if t.key == nil {
		t.key = make([]byte, 32)
		_, _ = rand.Read(t.key) // it never fails
	}
	var problems []error
	if len(t.key) < minKey {
		problems = append(problems, fmt.Errorf("the key of cookies has %d bytes: want at least %d", len(t.key), minKey))
	}
	lines, no := bufio.NewScanner(r), 0
	seen := make(map[[sha256.Size]byte]int)
	for lines.Scan() {
		no++
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "\ufeff")) // some editors begin a file with it
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		line, err := parseToken(fields)
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", no, err))
			continue
		}
		if first := seen[line.hash]; first != 0 {
			problems = append(problems, fmt.Errorf("line %d: its token is that of line %d", no, first))
			continue
		}
		seen[line.hash] = no
		t.list = append(t.list, line)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("line %d: %w", no+1, err))
	}
	if len(problems) == 0 && len(t.list) == 0 {
		problems = append(problems, errors.New("the file has no tokens: `weaver token new NAME --access ACCESS` prints a line for it"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return t, nil
}

func parseToken(fields []string) (line tokenLine, err error) {
	if len(fields) != 3 {
		return line, fmt.Errorf("it has %d words: want a name, an access and the SHA-256 of the token", len(fields))
	}
	if line.Access, err = ParseAccess(fields[1]); err != nil { // its error repeats the word, which may be a misplaced secret
		return line, fmt.Errorf("the second word is not an access: use one or more of %s, or full, separated by commas", strings.Join(accessNames, ", "))
	}
	hash, err := hex.DecodeString(fields[2])
	if err != nil || len(hash) != sha256.Size {
		return line, fmt.Errorf("the third word is not a SHA-256 hash: use its %d hexadecimal digits, not the token itself", 2*sha256.Size)
	}
	line.Name = fields[0]
	copy(line.hash[:], hash)
	return line, nil
}

// NewToken returns a token and the file's line for it.
func NewToken(name string, access Access) (token, line string) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	token = "wv_" + base64.RawURLEncoding.EncodeToString(raw)
	hash := sha256.Sum256([]byte(token))
	return token, fmt.Sprintf("%s %s %s", name, access, hex.EncodeToString(hash[:]))
}

// minKey is the minimum length of a cookie key in bytes: with a guessed key and the file an
// attacker can forge any cookie.
const minKey = 32

// find returns the principal of a token, in constant time.
func (t *Tokens) find(token string) (line *tokenLine) {
	hash := sha256.Sum256([]byte(token))
	for i := range t.list {
		if subtle.ConstantTimeCompare(hash[:], t.list[i].hash[:]) == 1 {
			line = &t.list[i]
		}
	}
	return line
}

// Authorize accepts `Authorization: Bearer TOKEN`, and the cookie of /login.
func (t *Tokens) Authorize(r *http.Request) (Principal, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		kind, token, _ := strings.Cut(header, " ")
		if line := t.find(strings.TrimSpace(token)); line != nil && strings.EqualFold(kind, "Bearer") {
			return line.Principal, nil
		}
		return Principal{}, ErrUnauthorized
	}
	for i, c := range r.CookiesNamed(cookieName) {
		if i == maxCookies {
			break
		}
		if line := t.ofCookie(c.Value, time.Now()); line != nil {
			return line.Principal, nil
		}
	}
	return Principal{}, ErrUnauthorized
}

// The cookie of a login: the name of the principal, its expiry, and a signature that also depends
// on the token, so that it becomes invalid with the token.
const (
	cookieName = "weaver_login"
	cookieLife = 12 * time.Hour
	maxCookies = 4 // limit of cookies checked: a browser also sends those of other mount paths
)

func (t *Tokens) sign(line *tokenLine, until int64) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write(line.hash[:])
	_, _ = fmt.Fprintf(m, "%d %s", until, line.Name)
	return m.Sum(nil)
}

func (t *Tokens) cookie(line *tokenLine, now time.Time) string {
	until := now.Add(cookieLife).Unix()
	return fmt.Sprintf("%d.%s", until, base64.RawURLEncoding.EncodeToString(t.sign(line, until)))
}

func (t *Tokens) ofCookie(value string, now time.Time) (found *tokenLine) {
	end, mac, _ := strings.Cut(value, ".")
	until, err := strconv.ParseInt(end, 10, 64)
	given, err2 := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || err2 != nil || now.Unix() >= until {
		return nil
	}
	for i := range t.list {
		if hmac.Equal(given, t.sign(&t.list[i], until)) {
			found = &t.list[i]
		}
	}
	return found
}
