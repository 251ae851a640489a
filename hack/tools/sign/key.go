package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// key is one of cosign: ECDSA on P-256, in a file that a password protects.
type key struct {
	signature.Signer
	public crypto.PublicKey
	hint   []byte
}

func readKey(file, password string) (*key, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(content, cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		return nil, err
	}
	curve, ok := private.(*ecdsa.PrivateKey)
	if !ok || curve.Curve != elliptic.P256() {
		return nil, errors.New("it must be an ECDSA key on P-256, as cosign generate-key-pair makes it")
	}
	signer, err := signature.LoadECDSASigner(curve, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKIXPublicKey(curve.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return &key{signer, curve.Public(), []byte(base64.StdEncoding.EncodeToString(sum[:]))}, nil
}

func (*key) GetHashAlgorithm() protocommon.HashAlgorithm { return protocommon.HashAlgorithm_SHA2_256 }

func (*key) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

func (k *key) GetHint() []byte { return k.hint }

func (*key) GetKeyAlgorithm() string { return "ECDSA" }

func (k *key) GetPublicKey() crypto.PublicKey { return k.public }

func (k *key) GetPublicKeyPem() (string, error) {
	encoded, err := cryptoutils.MarshalPublicKeyToPEM(k.public)
	return string(encoded), err
}

func (k *key) SignData(_ context.Context, data []byte) (signed, digest []byte, err error) {
	sum := sha256.Sum256(data)
	signed, err = k.SignMessage(bytes.NewReader(data))
	return signed, sum[:], err
}
