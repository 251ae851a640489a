package tools_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// secrets are texts that must not be readable in a dump, but for some labels and annotations that carry them.
type secrets struct {
	next int
	// carriers holds the key of the label or the annotation; empty for texts that are in neither.
	carriers map[string]string
}

// number is a secret that is a whole number, such as that of an account.
func (s *secrets) number(carrier string) string {
	s.next++
	text := fmt.Sprint(4_711_000_000 + s.next)
	s.carriers[text] = carrier
	return text
}

func (s *secrets) word(carrier string) string {
	s.next++
	text := fmt.Sprintf("acme%dacme", s.next)
	s.carriers[text] = carrier
	return text
}

// labels gives each key two values in turn: a number and a word.
func (s *secrets) labels(turn int, keys ...string) map[string]string {
	values := map[string]string{}
	for _, key := range keys {
		if values[key] = s.number(key); turn%2 == 1 {
			values[key] = s.word(key)
		}
	}
	return values
}

func (s *secrets) annotations(turn int, keys ...string) map[string]string {
	values := map[string]string{}
	for _, key := range keys {
		values[key] = []string{
			s.number(key), s.word(key), s.word(key) + "|" + s.word(key) + "|Tesla-T4",
			fmt.Sprintf(`{"account": %s}`, s.number(key)), s.word(key) + "=" + s.number(key),
		}[turn]
	}
	return values
}

// secretsAreNotInADump fills a real API server with account numbers, lists of models and names of windows wherever
// users can write them, and looks for them in the file.
func secretsAreNotInADump(t *testing.T, shared *box.Box) {
	s := &secrets{carriers: map[string]string{}}
	const account, rank = "example.com/account", "example.com/rank"
	annotated := append(wellknown.Own(), account, "alibabacloud.com/gpu-card-model", "alibabacloud.com/gpu-index",
		"gpu-fraction", "runai-gpu",
		"hami.io/vgpu-node", "nvidia.com/use-gputype", "kubectl.kubernetes.io/last-applied-configuration")
	labelled := []string{account, "team", "app.kubernetes.io/instance", "pod-group.scheduling.sigs.k8s.io/name",
		wellknown.RoleKey, wellknown.SLAClassKey,
		"apps.kubernetes.io/pod-index", "nvidia.com/gpu.product", "topology.kubernetes.io/zone", "kubernetes.io/hostname"}
	create := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for turn := range 5 {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.word(""), Labels: s.labels(turn, append(labelled, rank)...),
			Annotations: s.annotations(turn, annotated...)},
			Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: account, Value: s.number(account),
				Effect: v1.TaintEffectNoSchedule}}, ProviderID: "aws:///" + s.number("")}}
		_, err := shared.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		create(err)
		space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.word(""), Labels: s.labels(turn, account),
			Annotations: s.annotations(turn, annotated...)}}
		_, err = shared.Client.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{})
		create(err)
		priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.word(""),
			Annotations: s.annotations(turn, annotated...)}, Value: int32(turn), Description: s.word("")}
		create(box.CreatePriorityClass(t.Context(), shared.Client, priority))
		_, err = shared.Client.CoreV1().Pods(space.Name).Create(t.Context(), secretPod(s, turn, priority.Name, account,
			labelled, annotated), metav1.CreateOptions{})
		create(err)
		group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
			"kind": "PodGroup", "spec": map[string]any{"minMember": int64(1)}}}
		group.SetName(s.word(""))
		group.SetLabels(s.labels(turn, labelled...))
		group.SetAnnotations(s.annotations(turn, annotated...))
		_, err = shared.Dynamic.Resource(podGroups).Namespace(space.Name).Create(t.Context(), group, metav1.CreateOptions{})
		create(err)
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: s.word(""), Labels: s.labels(turn, account),
			Annotations: s.annotations(turn, annotated...)},
			Spec: v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				StorageClassName: ptr.To(s.word("")),
				Selector:         &metav1.LabelSelector{MatchLabels: s.labels(turn, account)},
				Resources: v1.VolumeResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
		_, err = shared.Client.CoreV1().PersistentVolumeClaims(space.Name).Create(t.Context(), claim, metav1.CreateOptions{})
		create(err)
	}

	path := filepath.Join(t.TempDir(), "cluster.dump")
	mustBerth(t, "dump", "--hash-names", "--kubeconfig="+shared.Kubeconfig(), "--file="+path)
	file, err := os.ReadFile(path)
	create(err)
	unpacked, err := gzip.NewReader(bytes.NewReader(file))
	create(err)
	text, err := io.ReadAll(unpacked)
	create(err)
	taken, err := dump.Read(bytes.NewReader(file), "the dump")
	create(err)
	if len(taken.Objects) < 30 {
		t.Fatalf("the dump has %d objects, want those that were created", len(taken.Objects))
	}
	hidden := []string{"", account, rank, "team", "app.kubernetes.io/instance", "pod-group.scheduling.sigs.k8s.io/name",
		"kubernetes.io/hostname", "hami.io/vgpu-node", "kubectl.kubernetes.io/last-applied-configuration",
		wellknown.StartWindowKey, wellknown.GPUAssignedKey, wellknown.LicensesKey, wellknown.DatasetsKey, wellknown.IPPoolKey}
	for _, secret := range slices.Sorted(maps.Keys(s.carriers)) {
		carrier := s.carriers[secret]
		if at := strings.Index(string(text), secret); at >= 0 && slices.Contains(hidden, carrier) {
			t.Errorf("%s of %q is readable: …%s…", secret, carrier, text[max(0, at-120):min(len(text), at+60)])
		}
	}
}

// secretPod has a secret wherever a user can write one.
func secretPod(s *secrets, turn int, priorityClass, account string, labelled, annotated []string) *v1.Pod {
	number := func() string { return s.number(account) }
	terms := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: account, Operator: v1.NodeSelectorOpIn, Values: []string{number(), number()}}}}}}
	others := []v1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{s.word("")},
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: account,
			Operator: metav1.LabelSelectorOpNotIn, Values: []string{number()}}}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{account: number()}}}}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.word(""), Labels: s.labels(turn, labelled...),
			Annotations: s.annotations(turn, annotated...),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: s.word(""), UID: "1",
				Controller: ptr.To(true)}}},
		Spec: v1.PodSpec{
			SchedulerName: "none", PriorityClassName: priorityClass, AutomountServiceAccountToken: ptr.To(false),
			NodeSelector: map[string]string{account: number()},
			Hostname:     s.word(""), Subdomain: s.word(""), ImagePullSecrets: []v1.LocalObjectReference{{Name: s.word("")}},
			HostAliases: []v1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{s.word("")}}},
			Tolerations: []v1.Toleration{{Key: account, Operator: v1.TolerationOpEqual, Value: number()}},
			Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
				PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: others},
				PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{
					{Weight: 1, PodAffinityTerm: others[0]}}}},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname",
				WhenUnsatisfiable: v1.ScheduleAnyway,
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{account: number()}}}},
			Volumes: []v1.Volume{
				{Name: s.word(""), VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: s.word("")}}},
				{Name: s.word(""),
					VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
						ClaimName: s.word("")}}},
				{Name: s.word(""), VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: s.word(""), Path: "/" +
					s.word("")}}},
			},
			Containers: []v1.Container{{Name: s.word(""), Image: "registry.example.com/" + s.word("") + ":" + s.word(""),
				Command: []string{s.word("")}, Args: []string{s.word("")},
				Env: []v1.EnvVar{{Name: "ACCOUNT", Value: s.number("")}}, WorkingDir: "/" + s.word("")}},
		},
	}
}
