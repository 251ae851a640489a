package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/require"
)

func staticPod(t *testing.T) *v1.Pod {
	t.Helper()
	content, err := os.ReadFile("../../manifests/static-pod/kube-scheduler.yaml")
	require.NoError(t, err)
	pod := &v1.Pod{}
	require.NoError(t, yaml.UnmarshalStrict(content, pod))
	return pod
}

func TestTheStaticPodMountsWhatItsFlagsName(t *testing.T) {
	t.Parallel()
	container := staticPod(t).Spec.Containers[0]
	// The kubeconfig of kubeadm is root's alone.
	if user := container.SecurityContext.RunAsUser; user == nil || *user != 0 {
		t.Errorf("the user is %v, want 0", user)
	}
	for _, arg := range container.Args {
		_, path, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(path, "/") {
			continue
		}
		at := slices.IndexFunc(container.VolumeMounts, func(m v1.VolumeMount) bool {
			return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
		})
		if at < 0 {
			t.Errorf("%s is below no mount", arg)
		} else if !container.VolumeMounts[at].ReadOnly {
			t.Errorf("%s: the mount can be written", arg)
		}
	}
}
