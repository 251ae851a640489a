package tools_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// nothingIsOpen fails for a file of a sandbox that others than its owner may read, and for a process that could make
// one.
func nothingIsOpen(t *testing.T, sb *sandbox.Sandbox) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(sb.Dir(), func(path string, entry fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		// Components replace files while this looks.
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files++
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	require.NoError(t, err)
	if files < 20 {
		t.Errorf("the sandbox has %d files and folders, want keys, logs, data and more", files)
	}
	for _, component := range []string{"control-plane", "scheduler"} {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid(t, sb, component)))
		require.NoError(t, err)
		if !strings.Contains(string(status), "\nUmask:\t0077\n") {
			t.Errorf("%s makes files that others may read", component)
		}
	}
}

// nothingIsTold fails if what is secret is in a log of the sandbox or in a dump of its cluster.
func nothingIsTold(t *testing.T, shared *box.Box) {
	t.Helper()
	ctx, sb, c := t.Context(), shared.Sandbox, shared.Client
	const marker = "correct-horse-battery-staple"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "marked"},
		StringData: map[string]string{"password": marker}}
	if _, err := c.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	require.NoError(t, err)
	runMarked(t, shared, marker)
	// What a client presents is in no log either, whether it is let in or not.
	for _, credentials := range []string{token.Status.Token, marker} {
		present(t, sb, credentials)
	}
	key, err := os.ReadFile(filepath.Join(sb.Dir(), "pki", "admin.key"))
	require.NoError(t, err)
	keyLine := strings.Split(string(key), "\n")[1]
	secrets := []string{marker, base64.StdEncoding.EncodeToString([]byte(marker)), token.Status.Token, keyLine,
		base64.StdEncoding.EncodeToString(key)[:60]}

	logs, err := filepath.Glob(filepath.Join(sb.LogDir(), "*.log"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("%d logs: %v", len(logs), err)
	}
	texts := map[string][]byte{"a dump": dumpOf(t, sb)}
	for _, path := range append(logs, filepath.Join(sb.Dir(), "state.json"),
		filepath.Join(sb.Dir(), "scheduler-config.yaml")) {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range texts {
		for i, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has secret %d, %.12s…", name, i, secret)
			}
		}
	}
	if !bytes.Contains(texts["a dump"], []byte("marked")) {
		t.Error("the dump does not have the pod")
	}
}

// runMarked runs a pod that is told the secret in every way there is, for every profile to see.
func runMarked(t *testing.T, shared *box.Box, marker string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "marked"},
		Spec: corev1.PodSpec{
			SchedulerName: "berth-scheduler",
			Containers: []corev1.Container{{
				Name: "c", Image: "i", Command: []string{"run", marker}, Args: []string{"--password=" + marker},
				Env: []corev1.EnvVar{{Name: "PASSWORD", Value: marker}},
			}},
			InitContainers: []corev1.Container{{Name: "init", Image: "i", Args: []string{marker}}},
			Volumes: []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "marked"}}}},
		},
	}
	shared.Create(t, pod)
	// A second one that fits nowhere is written about at length.
	stuck := pod.DeepCopy()
	stuck.Name, stuck.Spec.NodeSelector = "marked-and-stuck", map[string]string{"nowhere": "true"}
	shared.Create(t, stuck)
	for _, name := range []string{pod.Name, stuck.Name} {
		shared.AwaitPod(t, name, "to be seen by the scheduler",
			func(pod *corev1.Pod) (bool, error) { return len(pod.Status.Conditions) > 0, nil })
	}
}

// present shows credentials to the API server and to the scheduler.
func present(t *testing.T, sb *sandbox.Sandbox, token string) {
	t.Helper()
	for _, of := range []func() (*rest.Config, error){sb.RESTConfig, sb.SchedulerConfig} {
		config, err := of()
		require.NoError(t, err)
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/configz", nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if response.StatusCode == http.StatusOK {
			t.Errorf("%s lets anybody in", config.Host)
		}
	}
}

// dumpOf is what a dump of the cluster says.
func dumpOf(t *testing.T, sb *sandbox.Sandbox) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.dump.gz")
	output := mustBerth(t, "dump", "--kubeconfig", sb.Kubeconfig(), "--file", file)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	return append(text, output...)
}
