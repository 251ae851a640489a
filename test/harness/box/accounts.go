package box

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/test/harness/require"
)

// KubeconfigOf is a kubeconfig with the rights of a service account in kube-system.
func (b *Box) KubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(b.Kubeconfig())
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:kube-system:" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system",
			"system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
