package coscheduling

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/sandbox"
	realbox "berth.dev/berth/test/harness/box"
)

// hearing is a follower and what it has told.
type hearing struct {
	*ownerFollower
	box *realbox.Box
	ctx context.Context // that of the follower

	mu   sync.Mutex
	told map[gang.ID]kubeview.GangOwnerState
}

// listen starts a follower with the rights of config; it ends with the test.
func listen(t *testing.T, box *realbox.Box, config *restclient.Config) *hearing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &hearing{box: box, ctx: ctx, told: map[gang.ID]kubeview.GangOwnerState{}}
	var err error
	h.ownerFollower, err = newOwnerFollower(ctx, config, func(_ context.Context, owner kubeview.GangOwner, s kubeview.GangOwnerState) {
		id := owner.Gang()
		if s.UID != "" && strings.HasSuffix(s.Why, "does not exist") {
			t.Errorf("%s has gone, and an event about %q would say so", owner.Object(), s.UID)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		s.APIVersion, s.UID, s.Created = "", "", time.Time{}
		h.told[id] = s
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		ended := make(chan struct{})
		go func() {
			h.running.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Error("the follower has not ended with its context")
		}
	})
	return h
}

// await waits until that is what was told last of the gang.
func (h *hearing) await(t *testing.T, what string, namespace, name string, want kubeview.GangOwnerState) {
	t.Helper()
	var got kubeview.GangOwnerState
	defer func() {
		if t.Failed() {
			t.Logf("%s: told last %+v, want %+v", what, got, want)
		}
	}()
	h.box.Await(t, what, func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		got = h.told[gang.ID{Namespace: namespace, Name: name}]
		return got == want, nil
	})
}

// followPods follows the gang of n pods that a controller makes in the namespace, which must be one.
func (h *hearing) followPods(t *testing.T, namespace string, n int) {
	t.Helper()
	var pods []v1.Pod
	h.box.Await(t, fmt.Sprintf("%d pods in %s", n, namespace), func(ctx context.Context) (bool, error) {
		list, err := h.box.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			pods = list.Items
		}
		return len(pods) >= n, nil
	})
	ids, classes := map[gang.ID]bool{}, map[string]bool{}
	for i := range pods {
		m, err := (*kubeview.GangOwnerPolicy)(nil).GangOf(&pods[i])
		if err != nil || m.Owner.Kind == "" {
			t.Fatalf("pod %s: gang %v of %+v, error %v", pods[i].Name, m.ID, m.Owner, err)
		}
		ids[m.ID] = true
		classes[kubeview.GangMember(&pods[i], kubeview.Membership{}, nil, true).Class] = true
		h.follow(h.ctx, m.Owner)
	}
	if len(ids) != 1 || len(classes) != 1 {
		t.Errorf("%d pods are in %d gangs and of %d classes, want one of each", len(pods), len(ids), len(classes))
	}
}

type objects struct {
	t       *testing.T
	dynamic dynamic.Interface
}

func (o objects) resource(plural, group string) dynamic.NamespaceableResourceInterface {
	return o.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
}

// create makes an object; a CRD's resource is served a moment after the CRD was made.
func (o objects) create(in dynamic.ResourceInterface, text string) {
	o.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		o.t.Fatal(err)
	}
	(&realbox.Box{}).Await(o.t, obj.GetKind()+" "+obj.GetName(), func(ctx context.Context) (bool, error) {
		_, err := in.Create(ctx, obj, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func (o objects) patch(in dynamic.ResourceInterface, name, patch string) {
	o.t.Helper()
	if _, err := in.Patch(o.t.Context(), name, apitypes.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

func (o objects) remove(in dynamic.ResourceInterface, name string) {
	o.t.Helper()
	if err := in.Delete(o.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
		o.t.Fatal(err)
	}
}

func (h *hearing) namespace(t *testing.T, name string) {
	t.Helper()
	if _, err := h.box.Client.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

const gangTemplate = `
  template:
    metadata: {labels: {app: train}, annotations: {berth.dev/gang: "true"}}
    spec: {schedulerName: absent-scheduler, restartPolicy: %s, containers: [{name: c, image: i}]}
`

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.kubeflow.org, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// The parts run one after the other on one control plane, whose controllers make the pods; nothing schedules them.
//
//nolint:tparallel // see above
func TestOwnersAreFollowed(t *testing.T) {
	t.Parallel()
	box := realbox.Start(t, "", sandbox.Options{NoScheduler: true})
	client, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a Job that is scaled, suspended, deleted", func(t *testing.T) {
		h, o := listen(t, box, box.Config), objects{t, client}
		h.namespace(t, "job")
		jobs := o.resource("jobs", "batch").Namespace("job")
		job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  parallelism: 3\n  completions: 3\n  completionMode: Indexed" + fmt.Sprintf(gangTemplate, "Never")
		o.create(jobs, job)
		h.followPods(t, "job", 3)
		h.await(t, "its parallelism", "job", "job.train", kubeview.GangOwnerState{Minimum: 3})
		o.patch(jobs, "train", `{"spec": {"parallelism": 2, "completions": 2}}`)
		h.await(t, "a smaller Job", "job", "job.train", kubeview.GangOwnerState{Minimum: 2})
		o.patch(jobs, "train", `{"spec": {"parallelism": 5, "completions": 5, "suspend": true}}`)
		h.await(t, "a Job that is suspended", "job", "job.train", kubeview.GangOwnerState{Minimum: 5})
		o.patch(jobs, "train", `{"spec": {"suspend": false}}`)
		h.await(t, "a Job that is resumed", "job", "job.train", kubeview.GangOwnerState{Minimum: 5})
		o.remove(jobs, "train")
		gone := kubeview.GangOwnerState{Minimum: 5, Why: "Job job/train, which says how many pods the gang has, does not exist"}
		h.await(t, "a Job that is gone", "job", "job.train", gone)
		h.drop(gang.ID{Namespace: "job", Name: "job.train"})
		h.ownerFollower.mu.Lock()
		followed, sources := len(h.gangs), len(h.sources["Job"].gangs)
		h.ownerFollower.mu.Unlock()
		if followed > 0 || sources > 0 {
			t.Errorf("after the last gang was dropped %d gangs are followed, by %d objects", followed, sources)
		}
		o.create(jobs, strings.Replace(job, "spec:", "spec:\n  suspend: true", 1))
		h.follow(h.ctx, kubeview.GangOwner{Kind: "Job", Namespace: "job", Name: "train"})
		h.await(t, "another Job of that name", "job", "job.train", kubeview.GangOwnerState{Minimum: 3})
	})

	t.Run("a StatefulSet whose gang can never be complete, until it is scaled down", func(t *testing.T) {
		h, o := listen(t, box, box.Config), objects{t, client}
		h.namespace(t, "set")
		sets := o.resource("statefulsets", "apps").Namespace("set")
		o.create(sets, "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec:\n  replicas: 4\n  selector: {matchLabels: {app: train}}"+fmt.Sprintf(gangTemplate, "Always"))
		h.followPods(t, "set", 1)
		h.await(t, "why it never starts", "set", "statefulset.web", kubeview.GangOwnerState{Minimum: 4,
			Why: "StatefulSet web creates its pods one after the other (podManagementPolicy: OrderedReady): a gang of 4 can never be complete; set podManagementPolicy: Parallel"})
		o.patch(sets, "web", `{"spec": {"replicas": 1}}`)
		h.await(t, "a set of one", "set", "statefulset.web", kubeview.GangOwnerState{Minimum: 1})
	})

	t.Run("a Deployment's ReplicaSet", func(t *testing.T) {
		h, o := listen(t, box, box.Config), objects{t, client}
		h.namespace(t, "deployment")
		o.create(o.resource("deployments", "apps").Namespace("deployment"), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: train}}"+fmt.Sprintf(gangTemplate, "Always"))
		h.followPods(t, "deployment", 2)
		sets, err := o.resource("replicasets", "apps").Namespace("deployment").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(sets.Items) != 1 {
			t.Fatalf("ReplicaSets: %v, error %v", sets, err)
		}
		h.await(t, "its replicas", "deployment", "replicaset."+sets.Items[0].GetName(), kubeview.GangOwnerState{Minimum: 2})
	})

	t.Run("a kind that the cluster does not serve yet", func(t *testing.T) {
		h, o := listen(t, box, box.Config), objects{t, client}
		h.namespace(t, "later")
		h.follow(h.ctx, kubeview.GangOwner{Kind: "PyTorchJob", Namespace: "later", Name: "train"})
		h.await(t, "that it is not served", "later", "pytorchjob.train", kubeview.GangOwnerState{Why: "cannot read pytorchjobs.kubeflow.org: the cluster does not serve them"})
		o.create(o.resource("customresourcedefinitions", "apiextensions.k8s.io"), fmt.Sprintf(crd, "pytorchjob", "PyTorchJob"))
		h.await(t, "that it is served", "later", "pytorchjob.train", kubeview.GangOwnerState{Why: "PyTorchJob later/train, which says how many pods the gang has, does not exist"})
		jobs := o.resource("pytorchjobs", "kubeflow.org").Namespace("later")
		o.create(jobs, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: train}\nspec: {pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 3}}}")
		h.await(t, "its replicas", "later", "pytorchjob.train", kubeview.GangOwnerState{Minimum: 4})
		o.patch(jobs, "train", `{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 7}}}}`)
		h.await(t, "more replicas", "later", "pytorchjob.train", kubeview.GangOwnerState{Minimum: 8})
		o.remove(o.resource("customresourcedefinitions", "apiextensions.k8s.io"), "pytorchjobs.kubeflow.org")
		box.Await(t, "the end of the kind", func(ctx context.Context) (bool, error) {
			_, err := jobs.List(ctx, metav1.ListOptions{})
			return apierrors.IsNotFound(err), nil
		})
		h.follow(h.ctx, kubeview.GangOwner{Kind: "PyTorchJob", Namespace: "later", Name: "other"})
		h.await(t, "that it is not served any more", "later", "pytorchjob.other", kubeview.GangOwnerState{Why: "cannot read pytorchjobs.kubeflow.org: the cluster does not serve them"})
	})

	t.Run("a kind of which an older version is served", func(t *testing.T) {
		h, o := listen(t, box, box.Config), objects{t, client}
		h.namespace(t, "older")
		o.create(o.resource("customresourcedefinitions", "apiextensions.k8s.io"), fmt.Sprintf(crd, "mpijob", "MPIJob"))
		o.create(o.resource("mpijobs", "kubeflow.org").Namespace("older"), "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: train}\nspec: {mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 2}}}")
		h.follow(h.ctx, kubeview.GangOwner{Kind: "MPIJob", Namespace: "older", Name: "train"})
		h.await(t, "its replicas", "older", "mpijob.train", kubeview.GangOwnerState{Minimum: 3})
	})

	t.Run("a kind that may not be read, until it may", func(t *testing.T) {
		config := restclient.CopyConfig(box.Config)
		config.Impersonate.UserName = "viewer"
		h, o := listen(t, box, config), objects{t, client}
		h.namespace(t, "rights")
		o.create(o.resource("jobs", "batch").Namespace("rights"), "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  parallelism: 2"+fmt.Sprintf(gangTemplate, "Never"))
		h.followPods(t, "rights", 2)
		// The pods of a LeaderWorkerSet say all that is needed, so that its own kind need not be readable.
		h.follow(h.ctx, kubeview.GangOwner{Kind: "LeaderWorkerSet", Namespace: "rights", Name: "serve", Part: "0", Minimum: 4})
		h.await(t, "which right is missing", "rights", "job.train", kubeview.GangOwnerState{
			Why: `cannot read jobs.batch: the scheduler's role lacks get, list and watch on "jobs" in API group "batch"`})
		rule := rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch"}}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := box.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "viewer"}}}
		if _, err := box.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h.await(t, "its parallelism", "rights", "job.train", kubeview.GangOwnerState{Minimum: 2})
		h.await(t, "nothing about the LeaderWorkerSet", "rights", "leaderworkerset.serve.0", kubeview.GangOwnerState{})
	})
}
