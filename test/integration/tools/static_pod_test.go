package tools_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
)

// staticPodStartsWithLastGood: a node has the folders of a control plane here. After a restart of the node with a
// mistake in the file, the pod has what worked before.
func staticPodStartsWithLastGood(t *testing.T, shared *box.Box) {
	s := newSite(t, shared, "static-pod", smallNode)
	node := t.TempDir()
	onNode := func(path string) string { return filepath.Join(node, path) }
	for _, folder := range []string{"/etc/kubernetes/berth", "/var/lib/berth"} {
		if err := os.MkdirAll(onNode(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := os.ReadFile(s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config := s.config(t, read(t, "static-pod/scheduler-config.yaml"), onNode("/etc/kubernetes/scheduler.conf"))
	for path, content := range map[string]string{"/etc/kubernetes/scheduler.conf": string(kubeconfig),
		"/etc/kubernetes/berth/scheduler-config.yaml": config} {
		if err := os.WriteFile(onNode(path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var pod v1.Pod
	if err := yaml.UnmarshalStrict([]byte(read(t, "static-pod/kube-scheduler.yaml")), &pod); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, strings.Replace(arg, "=/", "="+node+"/", 1))
	}
	args = append(args, "--secure-port=0") // the port of the pod may be another's here

	first := box.Command(t, "berth-scheduler", args...)
	named := func(pod *v1.Pod) { pod.Spec.SchedulerName = s.profile(v1.DefaultSchedulerName) }
	s.create(t, "before", named)
	s.Bound(t, "before", "")
	kept := onNode("/var/lib/berth/scheduler-config.yaml")
	s.Await(t, "a copy of the configuration", func(context.Context) (bool, error) {
		content, err := os.ReadFile(kept)
		return err == nil && string(content) == config, nil
	})
	if err := first.Stop(); err != nil {
		t.Errorf("stopping the scheduler: %v", err)
	}
	if err := os.WriteFile(onNode("/etc/kubernetes/berth/scheduler-config.yaml"), []byte("profiles: ["),
		0o600); err != nil {
		t.Fatal(err)
	}
	again := box.Command(t, "berth-scheduler", args...)
	again.AwaitLog(t, "going back to the last one that worked")
	s.create(t, "after", named)
	s.Bound(t, "after", "")
}
