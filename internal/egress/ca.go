package egress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"chorus/internal/atomicfile"
)

const (
	caFile    = "egress-ca.pem" // key and certificate in one file, so that they always match
	caLife    = 365 * 24 * time.Hour
	caRenew   = 30 * 24 * time.Hour // a new one is made if less time is left
	leafLife  = 7 * 24 * time.Hour
	leafRenew = 24 * time.Hour
	backdated = time.Hour // for slow clocks
	maxLeaves = 256       // cached; others are made again
)

// Authority signs the certificates that the proxy shows to programs in the sandbox for hosts with secrets.
// Only the sandbox trusts it. It is safe for concurrent use, and for many proxies at once.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // of all leaves; it never leaves the process

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// CA loads the authority from dir, or creates it on first use. Only its owner can read the file. A file that
// is damaged, about to expire or readable by others is replaced. With an empty dir it is kept in memory only.
func CA(dir string) (*Authority, error) {
	var a *Authority
	if dir != "" {
		a = loadCA(filepath.Join(dir, caFile))
	}
	if a == nil {
		var err error
		if a, err = makeCA(); err != nil {
			return nil, fmt.Errorf("make the certificate authority of the sandbox: %w", err)
		}
		if dir != "" {
			if err := a.save(dir); err != nil {
				return nil, fmt.Errorf("keep the certificate authority of the sandbox: %w", err)
			}
		}
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.leaf, a.leaves = leaf, map[string]*tls.Certificate{}
	return a, nil
}

// loadCA returns nil for anything unusable: a new authority does no harm.
func loadCA(path string) *Authority {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA || time.Until(pair.Leaf.NotAfter) < caRenew || time.Now().Before(pair.Leaf.NotBefore) {
		return nil
	}
	return &Authority{cert: pair.Leaf, key: key}
}

func makeCA() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Chorus sandbox egress", Organization: []string{"Chorus"}},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key}, nil
}

func (a *Authority) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = errors.Join(pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.Encode(&out, a.block()))
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, caFile), out.Bytes(), 0o600)
}

func (a *Authority) block() *pem.Block { return &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw} }

// PEM returns the authority's certificate, without its key.
func (a *Authority) PEM() []byte { return pem.EncodeToMemory(a.block()) }

// certificate returns the certificate for a host.
func (a *Authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if have := a.leaves[host]; have != nil && time.Until(have.Leaf.NotAfter) > leafRenew {
		return have, nil
	}
	now := time.Now()
	end := now.Add(leafLife)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{Organization: []string{"Chorus"}},
		NotBefore: now.Add(-backdated), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[host] = &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: cert}
	return a.leaves[host], nil
}

func serial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // does not fail
	raw[0] &= 0x7f           // positive
	raw[15] |= 1             // not zero
	return new(big.Int).SetBytes(raw[:])
}
