package scenarios_test

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
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// expect waits until what the line says holds, hold checks that it holds for the whole time.
func (w *world) expect(ctx context.Context, l *line) error {
	limit, err := l.duration("within", 20*time.Second)
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
	if l.arg(0) == "object" {
		return w.checkObject(ctx, l)
	}
	if _, is := counted[l.arg(0)]; is {
		most, err := l.int(1)
		if err != nil {
			return err
		}
		return w.checkCount(ctx, l.arg(0), most)
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
		if p.Status.Phase == v1.PodFailed {
			got["failed"]++
		}
		if _, c := podutil.GetPodCondition(&p.Status, v1.DisruptionTarget); c != nil && c.Status == v1.ConditionTrue {
			got["disrupted"]++
		}
	}
	w.mu.Lock()
	got["evicted"] = w.gone[setOf(l.arg(0))]
	w.mu.Unlock()
	got["nodes"], got["devices"] = len(bound), devicesOf(pods)
	for key, want := range l.options {
		switch {
		case key == "within" || key == "for":
		case key == "reason" || key == "shorter":
			if err := checkCondition(pods, key, want); err != nil {
				return err
			}
		case strings.HasPrefix(key, "annotation:"):
			if err := checkAnnotation(pods, strings.TrimPrefix(key, "annotation:"), w.named(want)); err != nil {
				return err
			}
		case key == "slowest":
			if err := w.checkSlowest(pods, want); err != nil {
				return err
			}
		case strings.HasPrefix(key, "on:"):
			if n := w.boundOn(bound, strings.TrimPrefix(key, "on:")); strconv.Itoa(n) != want {
				return fmt.Errorf("%s: %d pods are bound to such nodes, want %s (%s)", l.arg(0), n, key, want)
			}
		case strings.HasPrefix(key, "same:"):
			if err := w.checkDomains(bound, strings.TrimPrefix(key, "same:"), want); err != nil {
				return err
			}
		case strings.HasPrefix(key, "crossings:") || strings.HasPrefix(key, "segments:"):
			at := strings.LastIndex(key, ":")
			if err := w.checkRanks(pods, key[:at], key[at+1:], want); err != nil {
				return err
			}
		default:
			n, err := strconv.Atoi(want)
			if err != nil {
				return err
			}
			// "bound>=5" is the key "bound>" and the value 5.
			key, least := strings.CutSuffix(key, ">")
			if got[key] != n && (!least || got[key] < n) {
				return fmt.Errorf("%s: %s is %d, want %d (%v)", l.arg(0), key, got[key], n, got)
			}
		}
	}
	switch l.arg(1) {
	case "says":
		return checkMessages(pods, l.arg(2), func(p *v1.Pod) string {
			_, message := scheduledCondition(p)
			return message
		})
	case "event":
		if len(pods) == 0 {
			return fmt.Errorf("%s: there are no pods, want events about each that say %q", l.arg(0), l.arg(2))
		}
		for _, p := range pods {
			if err := w.checkEvent(ctx, p, l.arg(2)); err != nil {
				return err
			}
		}
	}
	return nil
}

// devicesOf counts the GPUs that pods with a node were told, each once.
func devicesOf(pods []*v1.Pod) int {
	devices := map[string]bool{}
	for _, p := range pods {
		for _, device := range gpuview.AssignedDevices(p) {
			if p.Spec.NodeName != "" {
				devices[fmt.Sprint(p.Spec.NodeName, "/", device)] = true
			}
		}
	}
	return len(devices)
}

// checkAnnotation wants every pod to have an annotation of this value.
func checkAnnotation(pods []*v1.Pod, key, want string) error {
	for _, p := range pods {
		if got := p.Annotations[key]; got != want {
			return fmt.Errorf("pod %s has the annotation %s %q, want %q", p.Name, key, got, want)
		}
	}
	return nil
}

// checkMessages wants what every pending pod's condition says to contain text, and one to be pending: those that were
// created a moment ago may not have been seen yet.
func checkMessages(pods []*v1.Pod, text string, says func(*v1.Pod) string) error {
	pending := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			continue
		}
		pending++
		if message := says(p); !strings.Contains(message, text) {
			return fmt.Errorf("pod %s says %q, want it to contain %q", p.Name, message, text)
		}
	}
	if pending == 0 {
		return fmt.Errorf("no pod is pending, want one that says %q", text)
	}
	return nil
}

// checkCondition wants every pending pod's condition to have a reason, or a message shorter than a number of bytes.
func checkCondition(pods []*v1.Pod, key, want string) error {
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			continue
		}
		reason, message := scheduledCondition(p)
		if key == "reason" && reason != want {
			return fmt.Errorf("pod %s is pending because of %q (%s), want %q", p.Name, reason, message, want)
		}
		if limit, err := strconv.Atoi(want); key == "shorter" && (err != nil || len(message) >= limit) {
			return fmt.Errorf("pod %s says in %d bytes %q, want fewer than %s", p.Name, len(message), message, want)
		}
	}
	return nil
}

func scheduledCondition(p *v1.Pod) (reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled {
			return c.Reason, c.Message
		}
	}
	return "", "no PodScheduled condition"
}

// checkSlowest wants none of the pods that exist to have waited longer for its node.
func (w *world) checkSlowest(pods []*v1.Pod, want string) error {
	limit, err := time.ParseDuration(want)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if waited := w.waited(p); waited > w.slacken(limit) {
			return fmt.Errorf("pod %s waited %s for its node, want no more than %s", p.Name, waited.Round(time.Millisecond),
				limit)
		}
	}
	return nil
}

// boundOn counts those that are bound to nodes of a prefix, or to one node.
func (w *world) boundOn(bound map[string]int, node string) int {
	n := 0
	for name, pods := range bound {
		if own := strings.TrimPrefix(name, w.name+"-"); own == node || strings.HasPrefix(own, node+"-") {
			n += pods
		}
	}
	return n
}

// checkDomains wants the nodes to lie in a number of domains of the label.
func (w *world) checkDomains(nodes map[string]int, label, want string) error {
	domains := map[string]bool{}
	list, err := w.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, n := range list {
		if nodes[n.Name] > 0 {
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

// checkEvent wants exactly one event about the object to contain text, a repeated one being one. It asks for them:
// each script that watched them would read all that were ever told in its box.
func (w *world) checkEvent(ctx context.Context, about metav1.Object, text string) error {
	list, err := w.client.EventsV1().Events(about.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := 0
	var notes []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.UID != about.GetUID() {
			continue
		}
		notes = append(notes, e.Note)
		if strings.Contains(e.Note, text) {
			found++
		}
	}
	if found != 1 {
		return fmt.Errorf("%d events about %s say %q, want one; the events are %q", found, about.GetName(), text, notes)
	}
	return nil
}

// roleCount says how many members of a role are bound, and how many are needed: "3/2".
func roleCount(status map[string]any, role string) string {
	roles, _ := status["roles"].([]any)
	for _, r := range roles {
		if r, ok := r.(map[string]any); ok && r["name"] == role {
			count := func(field string) int64 {
				n, _, _ := unstructured.NestedInt64(r, field)
				return n
			}
			return fmt.Sprintf("%d/%d", count("scheduled"), count("minMember"))
		}
	}
	return "absent"
}

// checkGroupMessage wants the reason in the status to contain text.
func checkGroupMessage(pg *unstructured.Unstructured, text string) error {
	conditions, _, _ := unstructured.NestedSlice(pg.Object, "status", "conditions")
	message := ""
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Scheduled" {
			message = fmt.Sprint(c["message"])
		}
	}
	if !strings.Contains(message, text) {
		return fmt.Errorf("PodGroup %s says %q, want it to contain %q", pg.GetName(), message, text)
	}
	return nil
}

// checkReserved compares what the PodGroup says of what is reserved for it.
func checkReserved(pg *unstructured.Unstructured, text string) error {
	conditions, _, _ := unstructured.NestedSlice(pg.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Reserved" && c["status"] == "True" {
			if message := fmt.Sprint(c["message"]); !strings.Contains(message, text) {
				return fmt.Errorf("PodGroup %s: %q is reserved, want %q", pg.GetName(), message, text)
			}
			return nil
		}
	}
	return fmt.Errorf("PodGroup %s: nothing is reserved", pg.GetName())
}

// startOf says whether a start is told, and whether it is over.
func startOf(status map[string]any) string {
	text, told, _ := unstructured.NestedString(status, "estimatedStart", "time")
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case !told:
		return "none"
	case err != nil:
		return text
	case at.Before(time.Now()):
		return "over"
	}
	return "told"
}

// checkGroup compares fields of a PodGroup's status; condition:X=True looks at a condition, role:X=3/2 at the members
// of a role that are bound and needed, min at the minimum, owners at its owners by kind.
func (w *world) checkGroup(ctx context.Context, l *line) error {
	pg, err := w.group(l.arg(1))
	switch {
	case l.arg(2) == "gone" && apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case l.arg(2) == "gone":
		return fmt.Errorf("PodGroup %s exists", l.arg(1))
	case l.arg(2) == "event":
		return w.checkEvent(ctx, pg, l.arg(3))
	case l.arg(2) == "says":
		return checkGroupMessage(pg, l.arg(3))
	case l.arg(2) == "reserved":
		return checkReserved(pg, l.arg(3))
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
		case "starts":
			got = startOf(status)
		}
		if role, ok := strings.CutPrefix(key, "role:"); ok {
			got = roleCount(status, role)
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
