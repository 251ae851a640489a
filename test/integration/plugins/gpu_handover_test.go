package plugins_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

const contestedFleet = `shapes:
- {name: shared, count: 2, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "4"}, allocatable: {cpu: "160", memory: 640Gi, pods: "500", nvidia.com/gpu: "4"}}
`

// replicas are schedulers with the shipped configuration and rights; one leads at a time.
type replicas struct {
	*attack
	config string
}

func newReplicas(t *testing.T, b *box.Box) *replicas {
	t.Helper()
	r := &replicas{attack: newAttack(t, b.Part(t, "contested", contestedFleet))}
	token, err := r.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), "berth-scheduler",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](86400)}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	access := clientcmdapi.NewConfig()
	access.Clusters["c"] = &clientcmdapi.Cluster{Server: r.Config.Host, CertificateAuthorityData: r.Config.CAData,
		CertificateAuthority: r.Config.CAFile}
	access.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	access.Contexts["x"], access.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, kubeconfig))
	shipped, err := manifests.Files.ReadFile("base/scheduler-config.yaml")
	require.NoError(t, err)
	config := map[string]any{}
	require.NoError(t, yaml.Unmarshal(shipped, &config))
	config["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	out, err := yaml.Marshal(config)
	require.NoError(t, err)
	r.config = write(t, string(out))
	return r
}

// leader is the identity of the replica that leads, empty for none.
func (r *replicas) leader(ctx context.Context) (string, error) {
	lease, err := r.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "berth-scheduler", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// awaitLeader waits until another replica leads.
func (r *replicas) awaitLeader(t *testing.T, not string) string {
	t.Helper()
	now := ""
	leases := r.Dynamic.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).
		Namespace(metav1.NamespaceSystem)
	r.AwaitObject(t, leases, "berth-scheduler", "to be another's", func(lease *unstructured.Unstructured) (bool, error) {
		var err error
		now, _, err = unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		return now != "" && now != not, err
	})
	return now
}

// press has the tenant create shares with stale answers, edit those that run and delete some, ten times a second, until
// ctx ends.
func (r *replicas) press(ctx context.Context) error {
	pods, random := r.tenant.CoreV1().Pods(r.Namespace), rand.New(rand.NewPCG(1, 2))
	turns := time.NewTicker(100 * time.Millisecond)
	defer turns.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-turns.C:
		}
		milli := []int{300, 400, 600, 900}[random.IntN(4)]
		annotations := with(stale, "alibabacloud.com/gpu-milli", fmt.Sprint(milli), "alibabacloud.com/gpu-index",
			fmt.Sprint(random.IntN(4)))
		if i%2 == 0 {
			annotations = with(stale, "gpu-fraction", fmt.Sprintf("0.%d", milli/100), "runai-gpu", fmt.Sprint(random.IntN(4)))
		}
		pod := r.Own(gpuPod(fmt.Sprintf("p-%d", i), nil, annotations))
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return ignoreEnd(ctx, err)
		}
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		for range min(2, len(list.Items)) {
			edited := list.Items[random.IntN(len(list.Items))].Name
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"runai-gpu":"%d","alibabacloud.com/gpu-index":"%d","berth.dev/gpu-assigned":null}}}`,
				random.IntN(4), random.IntN(4))
			if _, err := pods.Patch(ctx, edited, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil &&
				!apierrors.IsNotFound(err) {
				return ignoreEnd(ctx, err)
			}
		}
		for over := len(list.Items) - 40; over > 0; over-- {
			gone := list.Items[random.IntN(len(list.Items))].Name
			if err := pods.Delete(ctx, gone, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil &&
				!apierrors.IsNotFound(err) {
				return ignoreEnd(ctx, err)
			}
		}
	}
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the test has ended the load
	}
	return err
}

// given returns the pods that have a node, and what is wrong with what they were given.
func given(pods []*v1.Pod) (names []string, wrong error) {
	used, holders := map[string]int{}, map[string][]string{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			continue
		}
		held, ok := gpuview.Granted(pod)
		if !ok || len(held.Devices) != 1 {
			return nil, fmt.Errorf("pod %s is bound with the conditions %+v, want one with its device", pod.Name,
				pod.Status.Conditions)
		}
		names = append(names, pod.Name)
		device := fmt.Sprint(held.Node, "/", held.Devices[0])
		used[device] += held.Share.Milli
		if holders[device] = append(holders[device], pod.Name); used[device] > 1000 {
			return nil, fmt.Errorf("%d milli-GPU of GPU %s were given to the pods %s", used[device], device,
				strings.Join(holders[device], ", "))
		}
	}
	return names, nil
}

// awaitGiven waits until that number of pods were bound that were not before, and fails as soon as a device is given
// twice.
func (r *replicas) awaitGiven(t *testing.T, more int) {
	t.Helper()
	var known []string
	seen := map[string]bool{}
	r.AwaitPods(t, fmt.Sprintf("%d more pods with devices", more), func(pods []*v1.Pod) (bool, error) {
		now, err := given(pods)
		if known == nil {
			known = append(now, "")
		}
		for _, name := range now {
			if !slices.Contains(known, name) {
				seen[name] = true
			}
		}
		return len(seen) >= more, err
	})
}

// testHandOvers changes the leader of two running replicas while a tenant asks for shares, edits what they were told
// and deletes them.
func testHandOvers(t *testing.T, b *box.Box) {
	r := newReplicas(t, b)
	leader := r.StartScheduler(t, "replica-0", r.config)
	identity := r.awaitLeader(t, "")
	standby := r.StartScheduler(t, "replica-1", r.config)

	// Once one is created, the role has reached the authorizer.
	r.create(t, gpuPod("first", nil, strs{"gpu-fraction": "0.3"}))
	ctx, stop := context.WithCancel(t.Context())
	pressed := make(chan error, 1)
	go func() { pressed <- r.press(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-pressed; err != nil {
			t.Errorf("the tenant's load ended: %v", err)
		}
	})
	r.awaitGiven(t, 20)

	for i, part := range []struct {
		name string
		// leave ends the leadership; after comes when another leads.
		leave, after syscall.Signal
	}{
		{"the leader is killed", syscall.SIGKILL, 0},
		{"the leader releases the lease", syscall.SIGTERM, 0},
		{"the leader is suspended, and goes on when another leads", syscall.SIGSTOP, syscall.SIGCONT},
	} {
		t.Run(part.name, func(t *testing.T) {
			require.NoError(t, leader.Process.Signal(part.leave))
			identity = r.awaitLeader(t, identity)
			r.awaitGiven(t, 20)
			if part.after != 0 {
				require.NoError(t, leader.Process.Signal(part.after))
			}
			// One that does not lead any more ends.
			_ = leader.Wait()
			r.awaitGiven(t, 20)
			if now, err := r.leader(t.Context()); err != nil || now != identity {
				t.Errorf("%s leads, %v; want it to be %s still", now, err, identity)
			}
		})
		leader, standby = standby, r.StartScheduler(t, fmt.Sprintf("replica-%d", i+2), r.config)
	}
}
