package plugins_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// hangingWebhook is asked about every PodGroup of the namespaces with a label, and never answers.
type hangingWebhook struct {
	// asked counts the requests, hanging those that wait for an answer, most the largest number of those at a time.
	asked, hanging, most atomic.Int64
}

// hangIn has the API server ask a webhook that never answers about the PodGroups of the namespaces with the label.
func hangIn(t *testing.T, b *box.Box, label string) *hangingWebhook {
	t.Helper()
	h, ended := &hangingWebhook{}, make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		for now := h.hanging.Add(1); ; {
			if most := h.most.Load(); now <= most || h.most.CompareAndSwap(most, now) {
				break
			}
		}
		defer h.hanging.Add(-1)
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hangs"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hangs.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects:   ptr.To(admissionv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionv1.Fail), TimeoutSeconds: ptr.To[int32](30),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
			ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule: admissionv1.Rule{APIGroups: []string{"scheduling.x-k8s.io"}, APIVersions: []string{"*"},
					Resources: []string{"podgroups", "podgroups/status"}}}},
		}}}
	if _, err := b.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// answer removes the webhook, which is as good as having it answer.
func answer(t *testing.T, b *box.Box) {
	t.Helper()
	if err := b.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "hangs",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
