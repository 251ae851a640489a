package plugins_test

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

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// testRefusals forbids PodGroups in one namespace, and names gangs as no object can be named.
func testRefusals(t *testing.T, b *box.Box) {
	of := newTenants(t, b, "refusals")
	forbidPodGroups(t, of.mallory)
	for i := range 5 {
		member(t, of.mallory, fmt.Sprintf("m-%d", i), fmt.Sprintf("g%d", i), 2)
	}
	awaitRefusals(t, of.mallory, "m-", 5)

	t.Run("another namespace gets its PodGroups", func(t *testing.T) {
		member(t, of.alice, "a-0", "g", 2)
		awaitGroups(t, of.alice, 1)
	})
	t.Run("those that were refused get theirs once they are allowed", func(t *testing.T) {
		bindings := b.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		require.NoError(t, bindings.Delete(t.Context(), "no-groups", metav1.DeleteOptions{}))
		awaitGroups(t, of.mallory, 5)
	})
	t.Run("a quota of no PodGroups holds in its own namespace", func(t *testing.T) {
		trent := of.alice.Tenant(t, "trent", nil)
		forbidByQuota(t, trent)
		for i := range 30 {
			member(t, trent, fmt.Sprintf("q-%d", i), fmt.Sprintf("q%d", i), 1)
		}
		// They start without, and one member of each hears of it once.
		trent.BoundPods(t, "", 30)
		awaitRefusals(t, trent, "q-", 30)
		member(t, of.alice, "a-1", "h", 1)
		awaitGroups(t, of.alice, 2)
		stillRefusals(t, trent, "q-", 30)
		quotas := b.Client.CoreV1().ResourceQuotas(trent.Namespace)
		require.NoError(t, quotas.Delete(t.Context(), "no-groups", metav1.DeleteOptions{}))
		awaitGroups(t, trent, 30)
	})
	oscar := of.alice.Tenant(t, "oscar", nil)
	t.Run("a name that no object can have is told once and never tried", func(t *testing.T) {
		for i, name := range []string{"Not_A.Name", "UPPER", "a..b", "a_b", "a.-b", strings.Repeat("N", 63)} {
			prefix := fmt.Sprintf("odd%d-", i)
			for n := range 3 {
				member(t, oscar, fmt.Sprint(prefix, n), name, 4)
			}
			awaitRefusals(t, oscar, prefix, 1)
			// It is scheduled all the same.
			member(t, oscar, prefix+"3", name, 4)
			oscar.BoundPods(t, prefix, 4)
			stillRefusals(t, oscar, prefix, 1)
		}
	})
	t.Run("other names are refused before the scheduler sees them", func(t *testing.T) {
		for _, name := range []string{strings.Repeat("n", 64), "a/b", "../alice/g", "\u0433\u0440\u0443\u043f\u043f\u0430",
			"a b", "a\x00"} {
			never := pod("never", "gang-scheduler", labeled(strs{"pod-group.scheduling.sigs.k8s.io/name": name}))
			if _, err := b.Client.CoreV1().Pods(oscar.Namespace).Create(t.Context(), never,
				metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("creating a pod of the group %q: %v, want it invalid", name, err)
			}
		}
	})
	t.Run("webhooks of some namespaces that hang do not delay others", func(t *testing.T) {
		testHangingWebhooks(t, of.alice)
	})
}

// testHangingWebhooks has the webhooks of 40 namespaces hang, which all have more gangs than may be written at a time.
func testHangingWebhooks(t *testing.T, b *box.Box) {
	const namespaces, gangs, others = 40, 6, 8
	hook := hangIn(t, b, "hangs")
	slow := make([]*box.Box, namespaces)
	for i := range slow {
		slow[i] = b.Tenant(t, fmt.Sprintf("slow-%d", i), strs{"hangs": "true"})
	}
	for g := range gangs {
		for i := range slow {
			member(t, slow[i], fmt.Sprintf("s-%d", g), fmt.Sprintf("g%d", g), 1)
		}
	}
	b.Await(t, "the webhook to hang", func(context.Context) (bool, error) { return hook.hanging.Load() > 0, nil })

	began := time.Now()
	quick := make([]*box.Box, others)
	for i := range quick {
		quick[i] = b.Tenant(t, fmt.Sprintf("quick-%d", i), nil)
		for m := range 8 {
			member(t, quick[i], fmt.Sprintf("w-%d", m), fmt.Sprintf("g%d", m%4), 2)
		}
	}
	for i := range quick {
		awaitGroups(t, quick[i], 4)
		quick[i].BoundPods(t, "", 8)
	}
	t.Logf("others are done in %s: the webhook was asked %d times, at most %d at a time, and %d hang", time.Since(began),
		hook.asked.Load(), hook.most.Load(), hook.hanging.Load())
	for i := range slow {
		// Their gangs start all the same.
		slow[i].BoundPods(t, "", gangs)
		awaitRefusals(t, slow[i], "s-", gangs)
	}
	answer(t, b)
	for i := range slow {
		awaitGroups(t, slow[i], gangs)
	}
}

// forbidByQuota gives a namespace a quota of no PodGroups, which counts at once: no controller runs that would count
// first.
func forbidByQuota(t *testing.T, b *box.Box) {
	t.Helper()
	none := v1.ResourceList{"count/podgroups.scheduling.x-k8s.io": resource.MustParse("0")}
	quotas := b.Client.CoreV1().ResourceQuotas(b.Namespace)
	quota := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"}, Spec: v1.ResourceQuotaSpec{Hard: none}}
	quota, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	if err == nil {
		quota.Status = v1.ResourceQuotaStatus{Hard: none, Used: none}
		_, err = quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	}
	require.NoError(t, err)
	awaitRefusal(t, b, "exceeded quota")
}

// forbidPodGroups makes the API server refuse PodGroups in a namespace, and waits until it does.
func forbidPodGroups(t *testing.T, b *box.Box) {
	t.Helper()
	policies := b.Client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{APIGroups: []string{"scheduling.x-k8s.io"}, APIVersions: []string{"*"},
						Resources: []string{"podgroups"}}}}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("request.namespace != %q", b.Namespace)}}}}
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-groups"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "no-groups", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, b, "no-groups")
}

// awaitRefusal waits until the API server refuses PodGroups in a namespace for a reason.
func awaitRefusal(t *testing.T, b *box.Box, reason string) {
	t.Helper()
	probe := b.Dynamic.Resource(podGroups).Namespace(b.Namespace)
	b.Await(t, "PodGroups to be refused in "+b.Namespace, func(ctx context.Context) (bool, error) {
		if err := probe.Delete(ctx, "probe", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		_, err := probe.Create(ctx, podGroup("probe", 1), metav1.CreateOptions{})
		return err != nil && strings.Contains(err.Error(), reason), nil
	})
}

func awaitGroups(t *testing.T, b *box.Box, n int) {
	t.Helper()
	b.AwaitObjects(t, b.Dynamic.Resource(podGroups).Namespace(b.Namespace),
		fmt.Sprintf("%d PodGroups in %s", n, b.Namespace),
		func(groups []*unstructured.Unstructured) (bool, error) { return len(groups) == n, nil })
}

// noPodGroups counts the events that no PodGroup can be made for the pods with a prefix, repetitions included.
func noPodGroups(events []*v1.Event, prefix string) int {
	n := 0
	for _, e := range events {
		if e.Reason == "NoPodGroup" && strings.HasPrefix(e.InvolvedObject.Name, prefix) {
			n++
			if e.Series != nil {
				n += int(e.Series.Count)
			}
		}
	}
	return n
}

// awaitRefusals waits until the event that no PodGroup can be made was written for each of the gangs.
func awaitRefusals(t *testing.T, b *box.Box, prefix string, gangs int) {
	t.Helper()
	b.AwaitEvents(t, "one event NoPodGroup for each gang", func(events []*v1.Event) (bool, error) {
		return noPodGroups(events, prefix) == gangs, nil
	})
}

// stillRefusals checks that no event was written again.
func stillRefusals(t *testing.T, b *box.Box, prefix string, gangs int) {
	t.Helper()
	b.AwaitEvents(t, "the events", func(events []*v1.Event) (bool, error) {
		if n := noPodGroups(events, prefix); n != gangs {
			t.Errorf("%d events NoPodGroup about the pods %s* of %s, want %d", n, prefix, b.Namespace, gangs)
		}
		return true, nil
	})
}
