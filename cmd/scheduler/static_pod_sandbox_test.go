package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

func staticPod(t *testing.T) *v1.Pod {
	t.Helper()
	content, err := os.ReadFile("../../manifests/static-pod/kube-scheduler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict(content, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestTheStaticPodMountsWhatItsFlagsName(t *testing.T) {
	t.Parallel()
	container := staticPod(t).Spec.Containers[0]
	// The kubeconfig of kubeadm is root's alone, and so is a folder that the kubelet makes.
	if user := container.SecurityContext.RunAsUser; user == nil || *user != 0 {
		t.Errorf("the user is %v, want 0", user)
	}
	for _, arg := range container.Args {
		flag, path, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(path, "/") {
			continue
		}
		at := slices.IndexFunc(container.VolumeMounts, func(m v1.VolumeMount) bool {
			return path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")
		})
		if at < 0 {
			t.Errorf("%s is below no mount", arg)
		} else if writes := flag == "--last-good-config"; container.VolumeMounts[at].ReadOnly == writes {
			t.Errorf("%s: the mount is read-only: %t", arg, !writes)
		}
	}
}

// A node has the folders of a control plane here. After a restart of the node with a mistake in the file, the pod has what
// worked before.
func TestTheStaticPodStartsWithWhatWorkedLast(t *testing.T) {
	t.Parallel()
	box := box.Start(t, oneNode, sandbox.Options{NoKubelet: true, NoScheduler: true})
	node := t.TempDir()
	onNode := func(path string) string { return filepath.Join(node, path) }
	for _, folder := range []string{"/etc/kubernetes/berth", "/var/lib/berth"} {
		if err := os.MkdirAll(onNode(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := os.ReadFile(box.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../manifests/static-pod/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := patient(t, strings.ReplaceAll(string(shipped), " /etc/kubernetes/", " "+node+"/etc/kubernetes/"))
	for path, content := range map[string]string{"/etc/kubernetes/scheduler.conf": string(kubeconfig), "/etc/kubernetes/berth/scheduler-config.yaml": config} {
		if err := os.WriteFile(onNode(path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, arg := range staticPod(t).Spec.Containers[0].Args {
		args = append(args, strings.Replace(arg, "=/", "="+node+"/", 1))
	}
	args = append(args, "--secure-port=0") // the port of the pod may be another's here

	first := startProcess(t, args...)
	named := func(pod *v1.Pod) { pod.Spec.SchedulerName = v1.DefaultSchedulerName }
	create(t, box, "before", named)
	awaitBound(t, box, "before")
	kept := onNode("/var/lib/berth/scheduler-config.yaml")
	box.Await(t, "a copy of the configuration", func(context.Context) (bool, error) {
		content, err := os.ReadFile(kept)
		return err == nil && string(content) == config, nil
	})
	first.stop()
	if err := os.WriteFile(onNode("/etc/kubernetes/berth/scheduler-config.yaml"), []byte("profiles: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	again := startProcess(t, args...)
	again.awaitLog(t, box, "going back to the last one that worked")
	create(t, box, "after", named)
	awaitBound(t, box, "after")
}
