package calendar

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for systems without a time zone database, and browsers

	"github.com/goweaver/weaver/internal/typo"
)

// zoneNames has the names of the zones in package time/tzdata, one a line, to suggest one. A name that is not in it
// may exist in a newer database. The names of a Go release:
//
//	unzip -Z1 "$(go env GOROOT)/lib/time/zoneinfo.zip" | grep -v '/$' | LC_ALL=C sort
//
//go:embed zones.txt
var zoneNames string

// zones maps the names in lower case to the names.
var zones = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for zone := range strings.SplitSeq(strings.TrimSpace(zoneNames), "\n") {
		names[strings.ToLower(zone)] = zone
	}
	return names
})

// load returns a zone of the time zone database. It refuses names that mean different zones on different machines, or
// exist on some of them only: Local, names in another case, posix/… and right/… (which counts leap seconds).
func load(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("the zone of the machine differs between machines; name it, as in Europe/Berlin")
	}
	known, ok := zones()[strings.ToLower(name)]
	if !ok || known == name {
		if loc, err := time.LoadLocation(name); err == nil && name[0] >= 'A' && name[0] <= 'Z' {
			return loc, nil
		}
		known = nearest(name)
	}
	if known != "" {
		return nil, fmt.Errorf("unknown time zone; did you mean %q?", known)
	}
	return nil, errors.New("unknown time zone; use a name of the IANA time zone database, as in Europe/Berlin or UTC")
}

// nearest returns the zone that a name is most like, or "": the name of its city alone, or up to two letters wrong.
func nearest(name string) string {
	const most = 2
	wanted := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	best, distance := "", most+1
	for _, lower := range slices.Sorted(maps.Keys(zones())) {
		city := lower[strings.LastIndexByte(lower, '/')+1:]
		d := min(typo.Distance(lower, wanted, most), typo.Distance(city, wanted, most)+1)
		switch {
		case city == wanted:
			d = 0
		case len(wanted) < 5: // two letters turn any abbreviation into another
			continue
		}
		if d < distance {
			best, distance = zones()[lower], d
		}
	}
	return best
}

// The years whose changes ZoneVersion covers. A constant range keeps it the same as time passes.
const (
	versionFrom = 2020
	versionTo   = 2100
)

// ZoneVersion returns a hash of the offsets that the zone has from 2020 to 2100. It differs between two databases only if
// they disagree on those, not with the release of the database and not with its source. It is empty for Every.
func (r *Recurrence) ZoneVersion() string {
	c, ok := r.rule.(cron)
	if !ok {
		return ""
	}
	var text []byte
	var last int64
	end := time.Date(versionTo, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for t := time.Date(versionFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix(); t < end; {
		p := periodAt(c.loc, t)
		if len(text) == 0 || p.off != last { // some periods are in parts, or differ in their name alone
			last = p.off
			text = binary.BigEndian.AppendUint64(text, uint64(t))
			text = binary.BigEndian.AppendUint64(text, uint64(p.off))
		}
		t = p.end
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
