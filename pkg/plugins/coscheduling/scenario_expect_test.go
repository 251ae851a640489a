package coscheduling_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// expect waits until what the line says holds, hold checks that it holds for the whole time.
func (w *world) expect(ctx context.Context, l *line) error {
	limit, err := l.duration("within", 10*time.Second)
	if err != nil {
		return err
	}
	return w.eventually(ctx, limit, func() error { return w.check(ctx, l) })
}

func (w *world) hold(ctx context.Context, l *line) error {
	d, err := l.duration("for", 3*time.Second)
	if err != nil {
		return err
	}
	return w.throughout(ctx, d, func() error { return w.check(ctx, l) })
}

func (w *world) check(ctx context.Context, l *line) error {
	if l.arg(0) == "group" {
		return w.checkGroup(ctx, l)
	}
	pods := w.set(l.arg(0))
	bound := map[string]int{}
	got := map[string]int{"exist": len(pods)}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			got["bound"]++
			bound[p.Spec.NodeName]++
		} else {
			got["pending"]++
		}
		if p.DeletionTimestamp != nil {
			got["terminating"]++
		}
	}
	w.mu.Lock()
	got["evicted"] = w.gone[setOf(l.arg(0))]
	w.mu.Unlock()
	got["nodes"] = len(bound)
	for key, want := range l.options {
		switch {
		case key == "within" || key == "for":
		case strings.HasPrefix(key, "same:"):
			if err := w.checkDomains(ctx, bound, strings.TrimPrefix(key, "same:"), want); err != nil {
				return err
			}
		default:
			n, err := strconv.Atoi(want)
			if err != nil {
				return err
			}
			if got[key] != n {
				return fmt.Errorf("%s: %s is %d, want %d (%v)", l.arg(0), key, got[key], n, got)
			}
		}
	}
	if l.arg(1) == "says" {
		return checkMessages(pods, l.arg(2))
	}
	return nil
}

// checkMessages wants every pending pod's condition to contain text.
func checkMessages(pods []*v1.Pod, text string) error {
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			continue
		}
		message := "no PodScheduled condition"
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodScheduled {
				message = c.Message
			}
		}
		if !strings.Contains(message, text) {
			return fmt.Errorf("pod %s says %q, want it to contain %q", p.Name, message, text)
		}
	}
	return nil
}

// checkDomains wants the nodes to lie in so many domains of the label.
func (w *world) checkDomains(ctx context.Context, nodes map[string]int, label, want string) error {
	domains := map[string]bool{}
	list, err := w.client.CoreV1().Nodes().List(ctx, listScenario(w.name))
	if err != nil {
		return err
	}
	for i := range list.Items {
		if n := &list.Items[i]; nodes[n.Name] > 0 {
			domains[n.Labels[label]] = true
		}
	}
	if strconv.Itoa(len(domains)) != want {
		return fmt.Errorf("the pods lie in %d domains of %s, want %s", len(domains), label, want)
	}
	return nil
}

// owners counts the owners of an object by their kind.
func owners(o *unstructured.Unstructured) string {
	count := map[string]int{}
	for _, ref := range o.GetOwnerReferences() {
		count[ref.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d%s", count[kind], kind))
	}
	return strings.Join(parts, "+")
}

// checkEvent wants exactly one event about the object to contain text, a repeated one being one.
func (w *world) checkEvent(ctx context.Context, about *unstructured.Unstructured, text string) error {
	list, err := w.client.EventsV1().Events(about.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := 0
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == about.GetUID() && strings.Contains(e.Note, text) {
			found++
		}
	}
	if found != 1 {
		return fmt.Errorf("%d events about %s say %q, want one", found, about.GetName(), text)
	}
	return nil
}

// checkGroup compares fields of a PodGroup's status; condition:X=True looks at a condition, min at the minimum, owners at
// its owners by kind.
func (w *world) checkGroup(ctx context.Context, l *line) error {
	pg, err := w.group(ctx, l.arg(1))
	switch {
	case l.arg(2) == "gone" && apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case l.arg(2) == "gone":
		return fmt.Errorf("PodGroup %s exists", l.arg(1))
	case l.arg(2) == "event":
		return w.checkEvent(ctx, pg, l.arg(3))
	}
	status, _, err := unstructured.NestedMap(pg.Object, "status")
	if err != nil {
		return err
	}
	for key, want := range l.options {
		if key == "within" || key == "for" {
			continue
		}
		got := fmt.Sprint(status[key])
		switch key {
		case "min":
			value, _, _ := unstructured.NestedInt64(pg.Object, "spec", "minMember")
			got = fmt.Sprint(value)
		case "owners":
			got = owners(pg)
		}
		if kind, ok := strings.CutPrefix(key, "condition:"); ok {
			got = "absent"
			conditions, _ := status["conditions"].([]any)
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok && c["type"] == kind {
					got = fmt.Sprint(c["status"])
				}
			}
		}
		if got != want {
			return fmt.Errorf("PodGroup %s: %s is %s, want %s", l.arg(1), key, got, want)
		}
	}
	return nil
}
