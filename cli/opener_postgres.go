package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goweaver/weaver/store/postgres"
)

var (
	_ openedStore = (*postgres.DB)(nil)
	_ linked      = (*postgres.DB)(nil)
	_ monitored   = (*postgres.DB)(nil)
	_ writeProber = (*postgres.DB)(nil)
)

// postgresDatabase is a store in a PostgreSQL database.
type postgresDatabase struct {
	given string // includes the password; never printed
	postgres.Location
}

func postgresPlace(given string) (place, error) {
	where, err := postgres.Locate(given)
	if err != nil {
		return nil, badInput("Write --store postgres://USER@HOST/DATABASE, or set WEAVER_STORE; a password stands in it, in PGPASSWORD or in a password file.", "--store: %w", err)
	}
	return postgresDatabase{given, where}, nil
}

// open implements place. It never creates a database.
func (p postgresDatabase) open(ctx context.Context, _ bool) (openedStore, error) {
	db, err := postgres.Open(ctx, p.given)
	if err != nil {
		return nil, err // not the nil *DB: the interface would not be nil
	}
	return db, nil
}

// shown implements place.
func (p postgresDatabase) shown() string { return p.String() }

// full implements place.
func (p postgresDatabase) full() string { return p.String() }

// url implements place.
func (p postgresDatabase) url() string { return p.given }

// schema implements place.
func (p postgresDatabase) schema() string { return p.MigrationSQL() }

// logs implements place: one folder per server, database and schema, inside the user's state folder.
func (p postgresDatabase) logs() string {
	state, err := stateFolder()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "weaver", folderName(p.Place())+".logs")
}

// blobs implements place: workers on other machines would not see a folder of this machine.
func (postgresDatabase) blobs() string { return "" }

// file implements place.
func (postgresDatabase) file() string { return "" }

// madeByWork implements place: a schema in a shared database is created on purpose, and its creator owns it.
func (postgresDatabase) madeByWork() bool { return false }

// backupAdvice implements place.
func (p postgresDatabase) backupAdvice(file string) string {
	schema := p.Schema()
	if strings.Trim(schema, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
		schema = `"` + schema + `"` // pg_dump takes a pattern
	}
	return fmt.Sprintf("Use `pg_dump --format=custom --schema=%s --file=%s`, or a backup of the whole server. After a restore run doctor --post-restore.", quote(schema), quote(file))
}

// stateFolder returns the folder for a user's persistent program state: $XDG_STATE_HOME, or ~/.local/state.
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		return os.UserCacheDir() // the part of the profile that stays on this machine
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}

// folderName returns a readable folder name that is unique for each text.
func folderName(of string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, of)
	sum := sha256.Sum256([]byte(of))
	return strings.TrimLeft(plain[:min(len(plain), 80)], "-.") + "-" + hex.EncodeToString(sum[:4])
}
