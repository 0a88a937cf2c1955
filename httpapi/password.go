package httpapi

import (
	"bufio"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/privatefile"
)

// Passwords holds names with passwords for HTTP basic authentication, one per line:
//
//	ann read,operate pbkdf2-sha256$600000$SALT$HASH
//
// in the format of NewPassword.
type Passwords struct {
	list map[string]passwordLine
	most int // maximum rounds of a line

	*guesses
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

// LoadPasswords reads a password file. It rejects a file that other users can write.
func LoadPasswords(file string) (*Passwords, error) {
	if _, err := privatefile.Check(file); err != nil {
		return nil, err
	}
	f, err := plainfile.OpenStream(file)
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

// ReadPasswords reads passwords in the format of LoadPasswords.
func ReadPasswords(r io.Reader) (*Passwords, error) {
	p := &Passwords{list: make(map[string]passwordLine), guesses: newGuesses()}
	var problems []error
	seen := make(map[string]int)
	lines, no := bufio.NewScanner(r), 0
	for lines.Scan() {
		no++
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "\ufeff")) // some editors begin a file with it
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		line, err := parsePassword(fields)
		if first := seen[line.Name]; err == nil && first != 0 {
			err = fmt.Errorf("its name is that of line %d", first)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", no, err))
			continue
		}
		p.list[line.Name], seen[line.Name], p.most = line, no, max(p.most, line.rounds)
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, fmt.Errorf("line %d: %w", no+1, err))
	}
	if len(problems) == 0 && len(p.list) == 0 {
		problems = append(problems, errors.New("the file has no passwords"))
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
	if line.Access, err = ParseAccess(fields[1]); err != nil { // its error repeats the word, which may be a misplaced secret
		return line, fmt.Errorf("the second word is not an access: use one or more of %s, or full, separated by commas", strings.Join(accessNames, ", "))
	}
	parts := strings.Split(fields[2], "$")
	wrong := fmt.Errorf("the third word is not a password hash: use %s$ROUNDS$SALT$HASH", passwordScheme)
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

// NewPassword returns the file's line for a name and its password.
func NewPassword(name string, access Access, password string) (line string, err error) {
	return newPassword(name, access.String(), password, passwordRounds)
}

func newPassword(name, access, password string, rounds int) (line string, err error) {
	if len(strings.Fields(name)) != 1 || strings.HasPrefix(name, "#") {
		return "", fmt.Errorf("%q: not a name; use one word that does not begin with #", name)
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	hash, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	return fmt.Sprintf("%s %s %s$%d$%s$%s", name, access, passwordScheme, rounds, enc.EncodeToString(salt), enc.EncodeToString(hash)), nil
}
