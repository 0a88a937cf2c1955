package cli_test

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/cli"
)

// A table shrinks its columns in order and no more than needed; IDs keep their full length.
func TestTableFits(t *testing.T) {
	t.Parallel()
	head := []string{"ID", "NAME", "AT", "NOTE"}
	row := []string{"0123456789", "a-long-name", "3m ago (12:00)|3m ago", "次の仕事は失敗"}
	gives := []cli.Give{{"NOTE", 6}, {"AT", 0}, {"NAME", 4}}
	for width, want := range map[int]string{
		0:   "ID          NAME         AT              NOTE\n0123456789  a-long-name  3m ago (12:00)  次の仕事は失敗",
		100: "ID          NAME         AT              NOTE\n0123456789  a-long-name  3m ago (12:00)  次の仕事は失敗",
		55:  "ID          NAME         AT              NOTE\n0123456789  a-long-name  3m ago (12:00)  次の仕事は失敗",
		54:  "ID          NAME         AT      NOTE\n0123456789  a-long-name  3m ago  次の仕事は失敗",
		47:  "ID          NAME         AT      NOTE\n0123456789  a-long-name  3m ago  次の仕事は失敗",
		46:  "ID          NAME         AT      NOTE\n0123456789  a-long-name  3m ago  次の仕事は失…",
		39:  "ID          NAME         AT      NOTE\n0123456789  a-long-name  3m ago  次の…",
		37:  "ID          NAME         NOTE\n0123456789  a-long-name  次の…",
		29:  "ID          NAME        NOTE\n0123456789  a-long-na…  次の…",
		10:  "ID          NAME  NOTE\n0123456789  a-l…  次の…",
	} {
		if got := strings.TrimSuffix(cli.TableFitted(width, gives, head, row), "\n"); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
}
