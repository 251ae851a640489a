package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func deployment(name, configMap string, ready int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "kube-system", Labels: map[string]string{"app.kubernetes.io/name": "berth-scheduler"},
	}}
	d.Status.ReadyReplicas = ready
	volume := v1.Volume{Name: "scratch"}
	if configMap != "" {
		volume.ConfigMap = &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: configMap}}
	}
	d.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "scratch"}, volume}
	return d
}

func configMap(name string, data map[string]string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}, Data: data}
}

func TestTheConfigMapOfTheRunningSchedulerIsRead(t *testing.T) {
	t.Parallel()
	shipped := configMap("config-2", map[string]string{"scheduler-config.yaml": "new", "other": "x"})
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		forbid  string // resource
		want    string
		err     string
	}{
		{name: "the mounted one, and not what an earlier roll has left",
			objects: []runtime.Object{deployment("s", "config-2", 1),
				configMap("config-1", map[string]string{"scheduler-config.yaml": "old"}), shipped},
			want: "new"},
		{name: "the only key, whatever its name", objects: []runtime.Object{deployment("s", "c", 1),
			configMap("c", map[string]string{"mine.yaml": "own"})}, want: "own"},
		{name: "the scheduler that has a ready replica", objects: []runtime.Object{deployment("a", "c", 0),
			deployment("b", "config-2", 2), shipped}, want: "new"},
		{name: "two that are ready", objects: []runtime.Object{deployment("a", "c", 1), deployment("b", "config-2", 2),
			shipped}, err: "there are several schedulers"},
		{name: "no Deployment", err: "no Deployment with the label"},
		{name: "a Deployment without a ConfigMap", objects: []runtime.Object{deployment("s", "", 1)},
			err: "no Deployment with the label"},
		{name: "a ConfigMap that has gone", objects: []runtime.Object{deployment("s", "gone", 1)},
			err: "reading ConfigMap kube-system/gone"},
		{name: "a ConfigMap without the file", objects: []runtime.Object{deployment("s", "c", 1), configMap("c", nil)},
			err: "has no key scheduler-config.yaml"},
		{name: "no right to read Deployments", forbid: "deployments", err: "forbidden"},
		{name: "no right to read the ConfigMap", objects: []runtime.Object{deployment("s", "config-2", 1), shipped},
			forbid: "configmaps", err: "forbidden"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(tt.objects...)
			if tt.forbid != "" {
				client.PrependReactor("*", tt.forbid, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tt.forbid}, "", errors.New("no"))
				})
			}
			got, err := configurationOfCluster(t.Context(), client)
			if tt.err != "" {
				if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want one that there is none, with %q in it", err, tt.err)
				}
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "configuration", tt.want, string(got.Content))
		})
	}
}

func TestTheSandboxOfAKubeconfigIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	layout := sandbox.Layout(dir)
	require.NoError(t, layout.WriteState(sandbox.State{Server: "https://127.0.0.1:7000",
		Scheduler: "https://127.0.0.1:7001"}))
	require.NoError(t, os.WriteFile(layout.SchedulerConfig(), []byte("mine"), 0o600))
	without := t.TempDir()
	require.NoError(t, sandbox.Layout(without).WriteState(sandbox.State{Server: "https://127.0.0.1:7000"}))
	torn := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(torn, "state.json"), []byte(`{"server": `), 0o600))
	for _, tt := range []struct{ name, server, folder, want string }{
		{"beside its kubeconfig", "https://127.0.0.1:7000/", dir, "mine"},
		{"another cluster's kubeconfig in its folder", "https://10.0.0.1:6443", dir, ""},
		{"a sandbox without a scheduler", "https://127.0.0.1:7000", without, ""},
		{"a folder that holds no sandbox", "https://127.0.0.1:7000", t.TempDir(), ""},
		{"a state that is half written", "https://127.0.0.1:7000", torn, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, err := configurationOfSandbox(tt.server, sandboxFolders([]string{"", filepath.Join(tt.folder, "kubeconfig")}))
			require.NoError(t, err)
			got := ""
			if found != nil {
				got = string(found.Content)
			}
			assert.Equal(t, "", tt.want, got)
		})
	}
}
