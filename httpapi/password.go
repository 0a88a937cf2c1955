package httpapi

import (
	"bufio"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Passwords are names with passwords, for HTTP's basic authentication: one line for
// each,
//
//	ann read,operate pbkdf2-sha256$600000$SALT$HASH
//
// as NewPassword makes it.
type Passwords struct {
	list map[string]passwordLine
	key  []byte // of known

	mu    sync.Mutex
	known map[string]string // by name: of a password that was right, so that a request costs no derivation
}

type passwordLine struct {
	Principal
	rounds     int
	salt, hash []byte
}

const (
	passwordScheme = "pbkdf2-sha256"
	passwordRounds = 600_000
)

// LoadPasswords reads a file of passwords.
func LoadPasswords(file string) (*Passwords, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the passwords: %w", err)
	}
	defer func() { _ = f.Close() }()
	p, err := ReadPasswords(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// ReadPasswords reads what LoadPasswords reads from a file.
func ReadPasswords(r io.Reader) (*Passwords, error) {
	p := &Passwords{list: make(map[string]passwordLine), key: make([]byte, 32), known: make(map[string]string)}
	_, _ = rand.Read(p.key) // it never fails
	var problems []error
	lines := bufio.NewScanner(r)
	for no := 1; lines.Scan(); no++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		line, err := parsePassword(fields)
		if _, twice := p.list[line.Name]; err == nil && twice {
			err = fmt.Errorf("the name %q is there twice", line.Name)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", no, err))
			continue
		}
		p.list[line.Name] = line
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 && len(p.list) == 0 {
		problems = append(problems, errors.New("there is no password"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

func parsePassword(fields []string) (line passwordLine, err error) {
	if len(fields) != 3 {
		return line, fmt.Errorf("it has %d words: want a name, an access and the hash of the password", len(fields))
	}
	if line.Access, err = ParseAccess(fields[1]); err != nil {
		return line, err
	}
	parts := strings.Split(fields[2], "$")
	wrong := fmt.Errorf("the third word is no hash of a password: want %s$ROUNDS$SALT$HASH", passwordScheme)
	if len(parts) != 4 || parts[0] != passwordScheme {
		return line, wrong
	}
	rounds, err := strconv.Atoi(parts[1])
	salt, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	hash, err3 := base64.RawURLEncoding.DecodeString(parts[3])
	if err = errors.Join(err, err2, err3); err != nil || rounds < 1000 || rounds > 10_000_000 || len(salt) < 8 || len(hash) != sha256.Size {
		return line, wrong
	}
	line.Name, line.rounds, line.salt, line.hash = fields[0], rounds, salt, hash
	return line, nil
}

// NewPassword makes the line of the file for a name and its password.
func NewPassword(name string, access Access, password string) (line string, err error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	hash, err := pbkdf2.Key(sha256.New, password, salt, passwordRounds, sha256.Size)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	return fmt.Sprintf("%s %s %s$%d$%s$%s", name, access, passwordScheme, passwordRounds, enc.EncodeToString(salt), enc.EncodeToString(hash)), nil
}

// Authorize takes `Authorization: Basic …`.
func (p *Passwords) Authorize(r *http.Request) (Principal, error) {
	name, password, given := r.BasicAuth()
	if !given {
		return Principal{}, ErrUnauthorized
	}
	line, exists := p.list[name]
	if !exists { // as long as a wrong password takes
		line = passwordLine{rounds: passwordRounds, salt: make([]byte, 16), hash: make([]byte, sha256.Size)}
	}
	m := hmac.New(sha256.New, p.key)
	_, _ = m.Write([]byte(password))
	digest := string(m.Sum(nil))
	p.mu.Lock()
	right := exists && hmac.Equal([]byte(p.known[name]), []byte(digest))
	p.mu.Unlock()
	if right {
		return line.Principal, nil
	}
	hash, err := pbkdf2.Key(sha256.New, password, line.salt, line.rounds, sha256.Size)
	if err != nil {
		return Principal{}, err
	}
	if !exists || !hmac.Equal(hash, line.hash) {
		return Principal{}, ErrUnauthorized
	}
	p.mu.Lock()
	p.known[name] = digest
	p.mu.Unlock()
	return line.Principal, nil
}
