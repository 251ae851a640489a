// Package pki makes the keys and certificates of a sandbox.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// schedulerUser is the name under which the API server knows the ServiceAccount of manifests/base: a client
// certificate with it has exactly the rights that the shipped manifests give.
const schedulerUser = "system:serviceaccount:kube-system:berth-scheduler"

// Names of the key pairs: <name>.crt, <name>.key.
const (
	CA             = "ca"
	FrontProxyCA   = "front-proxy-ca"
	Server         = "server"
	EtcdClient     = "etcd-client"
	Admin          = "admin"
	Scheduler      = "scheduler"
	ServiceAccount = "service-account"
)

// certLifetime is longer than anybody leaves a sandbox up.
const certLifetime = 365 * 24 * time.Hour

// Dir is the folder with the key material of one sandbox: one authority that signs for etcd, the API server and every
// client, and one for proxies that say who their clients are. They are two, as in kubeadm: with one, the API server
// would check the certificate of a client twice for each request.
type Dir string

// Cert is the path of a certificate.
func (p Dir) Cert(name string) string { return filepath.Join(string(p), name+".crt") }

// Key is the path of a key.
func (p Dir) Key(name string) string { return filepath.Join(string(p), name+".key") }

// New writes the keys and certificates, each file readable by its owner only.
func New(dir string) (Dir, error) {
	p := Dir(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("creating the folder of keys: %w", err)
	}
	loopback := certutil.AltNames{DNSNames: []string{"localhost", "kubernetes.default.svc"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	// No certificate may have the subject of its authority: OpenSSL, and what is built on it, takes it for self-signed.
	ca, caKey, err := p.newAuthority(CA, "berth-sandbox-ca")
	if err != nil {
		return p, err
	}
	if _, _, err := p.newAuthority(FrontProxyCA, "berth-sandbox-front-proxy-ca"); err != nil {
		return p, err
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		name   string
		config *pkiutil.CertConfig
		usages []x509.ExtKeyUsage
	}{
		{Server, certConfig("berth-sandbox-server", nil, loopback), both},
		{EtcdClient, certConfig("kube-apiserver", nil, certutil.AltNames{}), client},
		{Admin, certConfig("berth-admin", []string{"system:masters"}, certutil.AltNames{}), client},
		{Scheduler, certConfig(schedulerUser, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
			certutil.AltNames{}), client},
	} {
		c.config.Usages = c.usages
		cert, key, err := pkiutil.NewCertAndKey(ca, caKey, c.config)
		if err != nil {
			return p, fmt.Errorf("making the certificate %s: %w", c.name, err)
		}
		if err := p.write(c.name, cert, key); err != nil {
			return p, err
		}
	}
	signer, err := pkiutil.GeneratePrivateKey(kubeadmapi.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return p, fmt.Errorf("making the key of service accounts: %w", err)
	}
	if err := pkiutil.WriteKey(dir, ServiceAccount, signer); err != nil {
		return p, fmt.Errorf("writing the key of service accounts: %w", err)
	}
	return p, nil
}

func (p Dir) newAuthority(name, subject string) (*x509.Certificate, crypto.Signer, error) {
	cert, key, err := pkiutil.NewCertificateAuthority(certConfig(subject, nil, certutil.AltNames{}))
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority %s: %w", name, err)
	}
	return cert, key, p.write(name, cert, key)
}

func certConfig(name string, groups []string, alt certutil.AltNames) *pkiutil.CertConfig {
	return &pkiutil.CertConfig{
		Config: certutil.Config{CommonName: name, Organization: groups, AltNames: alt,
			NotBefore: time.Now().Add(-time.Minute)},
		NotAfter:            time.Now().Add(certLifetime),
		EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256,
	}
}

func (p Dir) write(name string, cert *x509.Certificate, key crypto.Signer) error {
	if err := pkiutil.WriteCertAndKey(string(p), name, cert, key); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	if err := os.Chmod(p.Cert(name), 0o600); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig, readable by its owner only, that carries the certificates in itself so that it
// can be copied.
func (p Dir) WriteKubeconfig(path, server, certName string) error {
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	for _, part := range []struct {
		file string
		into *[]byte
	}{
		{p.Cert(CA), &cluster.CertificateAuthorityData},
		{p.Cert(certName), &user.ClientCertificateData},
		{p.Key(certName), &user.ClientKeyData},
	} {
		data, err := os.ReadFile(part.file)
		if err != nil {
			return fmt.Errorf("writing kubeconfig %s: %w", path, err)
		}
		*part.into = data
	}
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = "berth", certName
	config.Clusters["berth"], config.AuthInfos[certName], config.Contexts["berth"] = cluster, user, context
	config.CurrentContext = "berth"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}
