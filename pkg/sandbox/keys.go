package sandbox

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

// schedulerUser is the user name of the ServiceAccount in manifests/base, so that a client certificate for it has the
// rights of the shipped manifests.
const schedulerUser = "system:serviceaccount:kube-system:berth-scheduler"

// Names of the key pairs: <name>.crt, <name>.key.
const (
	KeyCA             = "ca"
	KeyFrontProxyCA   = "front-proxy-ca"
	KeyServer         = "server"
	KeyEtcdClient     = "etcd-client"
	KeyAdmin          = "admin"
	KeyScheduler      = "scheduler"
	KeyServiceAccount = "service-account"
)

// certLifetime is longer than the expected life of a sandbox.
const certLifetime = 365 * 24 * time.Hour

// Keys is the folder with the keys of one sandbox: an authority for etcd, the API server and all clients, and one for
// front proxies. As in kubeadm these are two authorities: with one, the API server would check the certificate of a
// client twice for each request.
type Keys string

// Cert is the path of a certificate.
func (p Keys) Cert(name string) string { return filepath.Join(string(p), name+".crt") }

// Key is the path of a key.
func (p Keys) Key(name string) string { return filepath.Join(string(p), name+".key") }

// Make makes the keys and certificates, each file readable by its owner only.
func (p Keys) Make() error {
	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return fmt.Errorf("creating the folder of keys: %w", err)
	}
	loopback := certutil.AltNames{DNSNames: []string{"localhost", "kubernetes.default.svc"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	// OpenSSL takes a certificate with the subject of its authority for self-signed.
	ca, caKey, err := p.newAuthority(KeyCA, "berth-sandbox-ca")
	if err != nil {
		return err
	}
	if _, _, err := p.newAuthority(KeyFrontProxyCA, "berth-sandbox-front-proxy-ca"); err != nil {
		return err
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		name   string
		config *pkiutil.CertConfig
		usages []x509.ExtKeyUsage
	}{
		{KeyServer, certConfig("berth-sandbox-server", nil, loopback), both},
		{KeyEtcdClient, certConfig("kube-apiserver", nil, certutil.AltNames{}), client},
		{KeyAdmin, certConfig("berth-admin", []string{"system:masters"}, certutil.AltNames{}), client},
		{KeyScheduler, certConfig(schedulerUser, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
			certutil.AltNames{}), client},
	} {
		c.config.Usages = c.usages
		cert, key, err := pkiutil.NewCertAndKey(ca, caKey, c.config)
		if err != nil {
			return fmt.Errorf("making the certificate %s: %w", c.name, err)
		}
		if err := p.write(c.name, cert, key); err != nil {
			return err
		}
	}
	signer, err := pkiutil.GeneratePrivateKey(kubeadmapi.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	if err := pkiutil.WriteKey(string(p), KeyServiceAccount, signer); err != nil {
		return fmt.Errorf("writing the key of service accounts: %w", err)
	}
	return nil
}

func (p Keys) newAuthority(name, subject string) (*x509.Certificate, crypto.Signer, error) {
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

func (p Keys) write(name string, cert *x509.Certificate, key crypto.Signer) error {
	if err := pkiutil.WriteCertAndKey(string(p), name, cert, key); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	if err := os.Chmod(p.Cert(name), 0o600); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig, readable by its owner only. It embeds the certificates, so that it can be
// copied.
func (p Keys) WriteKubeconfig(path, server, certName string) error {
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	for _, part := range []struct {
		file string
		into *[]byte
	}{
		{p.Cert(KeyCA), &cluster.CertificateAuthorityData},
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
