package controlplane

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

// Names of the key pairs below pki/. <name>.crt, <name>.key.
const (
	certCA             = "ca"
	certServer         = "server"
	certEtcdClient     = "etcd-client"
	certAdmin          = "admin"
	certScheduler      = "scheduler"
	certServiceAccount = "service-account"
)

// certLifetime is longer than anybody leaves a sandbox up.
const certLifetime = 365 * 24 * time.Hour

// pki is the key material of one sandbox: one authority that signs for etcd, the API server and every client.
type pki struct {
	dir string
}

func (p pki) cert(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p pki) key(name string) string  { return filepath.Join(p.dir, name+".key") }

// newPKI writes the keys and certificates, each file readable by its owner only.
func newPKI(dir string) (pki, error) {
	p := pki{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("creating the folder of keys: %w", err)
	}
	loopback := certutil.AltNames{DNSNames: []string{"localhost", "kubernetes.default.svc"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	ca, caKey, err := pkiutil.NewCertificateAuthority(certConfig("berth-sandbox", nil, certutil.AltNames{}))
	if err != nil {
		return p, fmt.Errorf("making the certificate authority: %w", err)
	}
	if err := p.write(certCA, ca, caKey); err != nil {
		return p, err
	}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		name   string
		config *pkiutil.CertConfig
		usages []x509.ExtKeyUsage
	}{
		{certServer, certConfig("berth-sandbox", nil, loopback), both},
		{certEtcdClient, certConfig("kube-apiserver", nil, certutil.AltNames{}), client},
		{certAdmin, certConfig("berth-admin", []string{"system:masters"}, certutil.AltNames{}), client},
		{certScheduler, certConfig(schedulerUser, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}, certutil.AltNames{}), client},
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
	if err := pkiutil.WriteKey(dir, certServiceAccount, signer); err != nil {
		return p, fmt.Errorf("writing the key of service accounts: %w", err)
	}
	return p, nil
}

func certConfig(name string, groups []string, alt certutil.AltNames) *pkiutil.CertConfig {
	return &pkiutil.CertConfig{
		Config:              certutil.Config{CommonName: name, Organization: groups, AltNames: alt, NotBefore: time.Now().Add(-time.Minute)},
		NotAfter:            time.Now().Add(certLifetime),
		EncryptionAlgorithm: kubeadmapi.EncryptionAlgorithmECDSAP256,
	}
}

func (p pki) write(name string, cert *x509.Certificate, key crypto.Signer) error {
	if err := pkiutil.WriteCertAndKey(p.dir, name, cert, key); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	if err := os.Chmod(p.cert(name), 0o600); err != nil {
		return fmt.Errorf("writing the certificate %s: %w", name, err)
	}
	return nil
}

// writeKubeconfig writes a kubeconfig, readable by its owner only, that carries the certificates in itself so that it
// can be copied.
func (p pki) writeKubeconfig(path, server, certName string) error {
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	for _, part := range []struct {
		file string
		into *[]byte
	}{
		{p.cert(certCA), &cluster.CertificateAuthorityData},
		{p.cert(certName), &user.ClientCertificateData},
		{p.key(certName), &user.ClientKeyData},
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
