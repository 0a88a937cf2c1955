package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/internal/redistest"
)

// certificate writes a certificate of 127.0.0.1 and its key, and returns the pool that accepts it.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool = x509.NewCertPool()
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(certPEM)
	for file, text := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := certificate(t)
	s := redistest.Start(t, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-auth-clients", "no")
	arrives(t, open(t, "rediss://"+s.Addr, redis.Options{TLS: &tls.Config{RootCAs: pool}}), mail, all)

	if err := open(t, "rediss://"+s.Addr, redis.Options{}).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Ping with the system's root certificates = %v, want an error about the certificate", err)
	}
	if _, err := redis.Open(t.Context(), s.URL(), redis.Options{TLS: &tls.Config{RootCAs: pool}}); err == nil || !strings.Contains(err.Error(), "rediss://") {
		t.Errorf("Open with Options.TLS and redis:// = %v, want advice", err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "secret")
	sentinel := redistest.Sentinel(t, "main", s)
	sentinel.Do(t, "SENTINEL", "SET", "main", "auth-pass", "secret")
	arrives(t, open(t, "redis+sentinel://:secret@"+sentinel.Addr+"/main/1", redis.Options{}), mail, all)

	err := open(t, "redis+sentinel://:secret@"+sentinel.Addr+"/other", redis.Options{}).Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not know the master set") {
		t.Errorf("Ping with another master set = %v", err)
	}
	if _, err := redis.Open(t.Context(), "redis+sentinel://"+sentinel.Addr+"/main", redis.Options{}); err == nil || !strings.Contains(err.Error(), "wants a password") {
		t.Errorf("Open without the password = %v, want advice", err)
	}
}
