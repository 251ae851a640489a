package box

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// KubeconfigOf is a kubeconfig with the rights of a service account in kube-system.
func (b *Box) KubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(b.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:kube-system:" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system",
			"system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
