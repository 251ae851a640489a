package coscheduling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRefusalsOfOneNamespaceAreItsOwn forbids PodGroups in one namespace, and names gangs as no object can be named.
//
//nolint:paralleltest,tparallel // the parts of the story follow each other on one control plane
func TestRefusalsOfOneNamespaceAreItsOwn(t *testing.T) {
	t.Parallel()
	a := newAttack(t, "testdata/scheduler-config.yaml")
	a.forbidPodGroups("mallory")
	for i := range 5 {
		a.member("mallory", fmt.Sprintf("m-%d", i), fmt.Sprintf("g%d", i), 2, nil)
	}
	a.awaitOneEvent("mallory", "m-")

	t.Run("another namespace gets its PodGroups", func(t *testing.T) {
		a.member("alice", "a-0", "g", 2, nil)
		a.awaitGroups("alice", 1)
	})
	t.Run("those that were refused get theirs once they are allowed", func(t *testing.T) {
		if err := a.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "no-groups", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.awaitGroups("mallory", 5)
	})
	t.Run("a quota of no PodGroups holds in its own namespace", func(t *testing.T) {
		a.namespace("trent", nil)
		a.forbidByQuota("trent")
		for i := range 30 {
			a.member("trent", fmt.Sprintf("q-%d", i), fmt.Sprintf("q%d", i), 1, nil)
		}
		// They start without, and the namespace hears of it once.
		a.awaitBound("trent", 30)
		a.awaitOneEvent("trent", "q-")
		a.member("alice", "a-1", "h", 1, nil)
		a.awaitGroups("alice", 2)
		if n := a.events("trent", "q-", "NoPodGroup"); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
		if err := a.Client.CoreV1().ResourceQuotas("trent").Delete(t.Context(), "no-groups", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.awaitGroups("trent", 30)
	})
	t.Run("a name that no object can have is told once and never tried", func(t *testing.T) {
		a.namespace("oscar", nil)
		for i, name := range []string{"Not_A.Name", "UPPER", "a..b", "a_b", "a.-b", strings.Repeat("N", 63)} {
			prefix := fmt.Sprintf("odd%d-", i)
			for n := range 3 {
				a.member("oscar", fmt.Sprint(prefix, n), name, 4, nil)
			}
			a.awaitOneEvent("oscar", prefix)
			// It is scheduled all the same.
			a.member("oscar", prefix+"3", name, 4, nil)
			a.awaitBound("oscar", 4*(i+1))
			if n := a.events("oscar", prefix, "NoPodGroup"); n != 1 {
				t.Errorf("%d events about the gang %q, want 1", n, name)
			}
		}
	})
	t.Run("other names are refused before the scheduler sees them", func(t *testing.T) {
		for _, name := range []string{strings.Repeat("n", 64), "a/b", "../alice/g", "\u0433\u0440\u0443\u043f\u043f\u0430", "a b", "a\x00"} {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "never", Labels: map[string]string{"pod-group.scheduling.sigs.k8s.io/name": name}},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "c"}}}}
			if _, err := a.Client.CoreV1().Pods("oscar").Create(t.Context(), pod, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("creating a pod of the group %q: %v, want it invalid", name, err)
			}
		}
	})
	t.Run("webhooks of some namespaces that hang do not delay others", a.testHangingWebhooks)
}

// testHangingWebhooks has the webhooks of 40 namespaces hang, each of which has more gangs than may be written at a time.
func (a *attack) testHangingWebhooks(t *testing.T) {
	const namespaces, gangs, others = 40, 6, 8
	hook := a.hangIn(t, "hangs")
	slow := func(i int) string { return fmt.Sprintf("slow-%d", i) }
	for i := range namespaces {
		a.namespace(slow(i), map[string]string{"hangs": "true"})
	}
	for g := range gangs {
		for i := range namespaces {
			a.member(slow(i), fmt.Sprintf("s-%d", g), fmt.Sprintf("g%d", g), 1, nil)
		}
	}
	a.Await(t, "the webhook to hang", func(context.Context) (bool, error) { return hook.hanging.Load() > 0, nil })

	began := time.Now()
	for i := range others {
		namespace := fmt.Sprintf("quick-%d", i)
		a.namespace(namespace, nil)
		for m := range 8 {
			a.member(namespace, fmt.Sprintf("w-%d", m), fmt.Sprintf("g%d", m%4), 2, nil)
		}
	}
	for i := range others {
		a.awaitGroups(fmt.Sprintf("quick-%d", i), 4)
		a.awaitBound(fmt.Sprintf("quick-%d", i), 8)
	}
	t.Logf("others are done in %s: the webhook was asked %d times, at most %d at a time, and %d hang", time.Since(began), hook.asked.Load(), hook.most.Load(), hook.hanging.Load())
	for i := range namespaces {
		// Their gangs start all the same.
		a.awaitBound(slow(i), gangs)
		a.awaitOneEvent(slow(i), "s-")
	}
	a.answer(t)
	for i := range namespaces {
		a.awaitGroups(slow(i), gangs)
	}
}

// namespace creates a namespace.
func (a *attack) namespace(name string, labels map[string]string) {
	a.t.Helper()
	if _, err := a.Client.CoreV1().Namespaces().Create(a.t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// forbidByQuota gives a namespace a quota of no PodGroups, which counts at once: no controller runs that would count first.
func (a *attack) forbidByQuota(namespace string) {
	a.t.Helper()
	none := v1.ResourceList{"count/podgroups.scheduling.x-k8s.io": resource.MustParse("0")}
	quotas := a.Client.CoreV1().ResourceQuotas(namespace)
	quota, err := quotas.Create(a.t.Context(), &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"}, Spec: v1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	if err == nil {
		quota.Status = v1.ResourceQuotaStatus{Hard: none, Used: none}
		_, err = quotas.UpdateStatus(a.t.Context(), quota, metav1.UpdateOptions{})
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.awaitRefusal(namespace, "exceeded quota")
}

// forbidPodGroups makes the API server refuse PodGroups in a namespace, and waits until it does.
func (a *attack) forbidPodGroups(namespace string) {
	a.t.Helper()
	policies := a.Client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{"scheduling.x-k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"podgroups"}}}}}},
		Validations: []admissionv1.Validation{{Expression: "request.namespace != '" + namespace + "'"}}}}
	if _, err := policies.ValidatingAdmissionPolicies().Create(a.t.Context(), policy, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "no-groups", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(a.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.awaitRefusal(namespace, "no-groups")
}

// awaitRefusal waits until the API server refuses PodGroups in a namespace for a reason.
func (a *attack) awaitRefusal(namespace, reason string) {
	a.t.Helper()
	probe := a.dynamic.Resource(podGroupResource).Namespace(namespace)
	a.Await(a.t, "PodGroups to be refused in "+namespace, func(ctx context.Context) (bool, error) {
		if err := probe.Delete(ctx, "probe", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		_, err := probe.Create(ctx, unstructuredGroup("probe"), metav1.CreateOptions{})
		return err != nil && strings.Contains(err.Error(), reason), nil
	})
}

func (a *attack) awaitGroups(namespace string, n int) {
	a.t.Helper()
	a.Await(a.t, fmt.Sprintf("%d PodGroups in %s", n, namespace), func(ctx context.Context) (bool, error) {
		list, err := a.dynamic.Resource(podGroupResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == n, err
	})
}

// events counts the events of a reason about the pods with a prefix, repetitions included.
func (a *attack) events(namespace, prefix, reason string) int {
	a.t.Helper()
	list, err := a.Client.EventsV1().Events(namespace).List(a.t.Context(), metav1.ListOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	n := 0
	for _, e := range list.Items {
		if e.Reason == reason && strings.HasPrefix(e.Regarding.Name, prefix) {
			n++
			if e.Series != nil {
				n += int(e.Series.Count)
			}
		}
	}
	return n
}

// awaitOneEvent waits until the event that no PodGroup can be made was written once.
func (a *attack) awaitOneEvent(namespace, prefix string) {
	a.t.Helper()
	a.Await(a.t, "one event NoPodGroup", func(context.Context) (bool, error) { return a.events(namespace, prefix, "NoPodGroup") == 1, nil })
}

func unstructuredGroup(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"minMember": int64(1)}}}
}
