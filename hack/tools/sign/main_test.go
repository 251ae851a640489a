package main

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

const password = "a password"

// release is a folder with a file, its checksum and a pair of keys.
type release struct {
	dir    string
	verify *verify.Verifier
}

var artifact = []byte("a program")

func newRelease(t *testing.T) release {
	t.Helper()
	dir := t.TempDir()
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(),
		cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(artifact)
	for name, content := range map[string][]byte{"cosign.key": private,
		"SHA256SUMS": []byte(hex.EncodeToString(sum[:]) + "  program\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	v, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		t.Fatal(err)
	}
	return release{dir, v}
}

func (r release) sign(more ...string) error {
	return run(append([]string{"--key", filepath.Join(r.dir, "cosign.key"), "--source", "https://example.com/it",
		"--commit", "abc",
		"--version", "1.2.3", "--builder", "https://example.com/builder", filepath.Join(r.dir, "SHA256SUMS")}, more...))
}

// check verifies a bundle for a file as cosign does.
func (r release) check(t *testing.T, name string, file []byte) (*verify.VerificationResult, error) {
	t.Helper()
	b, err := bundle.LoadJSONFromPath(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return r.verify.Verify(b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(file)), verify.WithKey()))
}

func TestAReleaseIsSignedAndItsOriginIsAttested(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", password)
	r := newRelease(t)
	if err := r.sign(); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.check(t, "SHA256SUMS.sigstore.json", sums); err != nil {
		t.Error(err)
	}
	if _, err := r.check(t, "SHA256SUMS.sigstore.json", append(sums, '\n')); err == nil {
		t.Error("the signature holds for another list")
	}
	result, err := r.check(t, "provenance.sigstore.json", artifact)
	if err != nil {
		t.Fatal(err)
	}
	said, err := result.Statement.GetPredicate().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"git+https://example.com/it"`, `"abc"`, `"1.2.3"`, `"https://example.com/builder"`} {
		if !strings.Contains(string(said), want) {
			t.Errorf("the attestation lacks %s: %s", want, said)
		}
	}
	if result.Statement.GetPredicateType() != "https://slsa.dev/provenance/v1" {
		t.Errorf("the attestation is of the type %s", result.Statement.GetPredicateType())
	}
	if _, err := r.check(t, "provenance.sigstore.json", []byte("another program")); err == nil {
		t.Error("the attestation holds for another program")
	}
}

func TestWhatCannotBeSignedIsRefused(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", "a wrong one")
	if err := newRelease(t).sign(); err == nil || !strings.Contains(err.Error(), "reading the key") {
		t.Errorf("a wrong password: error %v", err)
	}
	t.Setenv("COSIGN_PASSWORD", password)
	if err := newRelease(t).sign("more"); err == nil || !strings.Contains(err.Error(), "usage: ") {
		t.Errorf("an argument too many: error %v", err)
	}
	for sums, want := range map[string]string{"": "it names no file", "abc  program\n": `line "abc  program" is none of sha256sum`} {
		r := newRelease(t)
		if err := os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), []byte(sums), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.sign(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the list %q: error %v, want %q", sums, err, want)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "SHA256SUMS.sigstore.json")); err == nil {
			t.Errorf("the list %q was signed", sums)
		}
	}
}
