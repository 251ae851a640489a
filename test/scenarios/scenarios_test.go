package scenarios_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
)

// world says where scenarios happen.
var worldFlag = flag.String("world", "virtual",
	"where scenarios happen: virtual (the API in memory, virtual time) or real (a sandbox)")

// TestScenarios runs every script in testdata. In virtual time each has a cluster of its own. In the real world first
// come those that need the machine, then those of every box, which is stopped when it has run them: first those that
// disturb the others, one after the other, then the others.
func TestScenarios(t *testing.T) {
	all, err := scripts()
	if err != nil {
		t.Fatalf("reading the scenarios: %v", err)
	}
	switch *worldFlag {
	case "virtual":
		inVirtualTime(t, all)
	case "real":
		inReality(t, all)
	default:
		t.Fatalf("-world is %q; it must be virtual or real", *worldFlag)
	}
}

// inVirtualTime runs the scripts by their feature gates, which hold for a process: those that count what the process
// does alone, the others side by side.
func inVirtualTime(t *testing.T, all []script) {
	byGates := map[string][]script{}
	for _, s := range all {
		if !says(s.text, "real-only") {
			gates := strings.Join(s.in.gates(), ",")
			byGates[gates] = append(byGates[gates], s)
		}
	}
	for _, gates := range slices.Sorted(maps.Keys(byGates)) {
		t.Run("gates "+gates, func(t *testing.T) {
			setGates(t, gates)
			for _, s := range byGates[gates] {
				t.Run(s.name, func(t *testing.T) {
					if !says(s.text, "count") {
						t.Parallel()
					}
					runVirtual(t, s)
				})
			}
		})
	}
}

// setGates sets feature gates until the test and those within it have ended.
func setGates(t *testing.T, gates string) {
	t.Helper()
	before := map[string]bool{}
	for gate := range strings.SplitSeq(gates, ",") {
		name, _, _ := strings.Cut(gate, "=")
		before[name] = utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(gates); err != nil {
		t.Fatalf("setting feature gates: %v", err)
	}
	t.Cleanup(func() {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(before); err != nil {
			t.Errorf("restoring feature gates: %v", err)
		}
	})
}

func inReality(t *testing.T, all []script) {
	run := func(s script) {
		t.Run(s.name, func(t *testing.T) { runReal(t, s) })
	}
	byBox := map[*box][]script{}
	for _, s := range all {
		switch {
		case says(s.text, "virtual-only"):
		case s.alone:
			run(s)
		default:
			byBox[s.in] = append(byBox[s.in], s)
		}
	}
	running, stopped := make(chan struct{}, boxesAtATime), sync.WaitGroup{}
	for _, b := range boxes {
		running <- struct{}{}
		stopped.Go(func() {
			defer func() { <-running }()
			runIn(byBox[b], run)
			if err := b.stop(); err != nil {
				t.Errorf("stopping the sandbox: %v", err)
			}
		})
	}
	stopped.Wait()
}

// runIn runs the scripts of a box.
func runIn(scripts []script, run func(script)) {
	for _, s := range scripts {
		if s.disturbing {
			run(s)
		}
	}
	slots, done := make(chan struct{}, atATime), sync.WaitGroup{}
	for _, s := range scripts {
		if !s.disturbing {
			slots <- struct{}{}
			done.Go(func() {
				defer func() { <-slots }()
				run(s)
			})
		}
	}
	done.Wait()
}

// scenarioWithin only ends a scenario that hangs: the limits of its commands, times slack, are of the machine's time,
// and little of it may pass in a real minute.
const scenarioWithin = 20 * time.Minute

// play does what a script says, and returns what it finds wrong.
func (w *world) play(ctx context.Context, text string) error {
	lines, err := parse(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		w.background.Wait()
	}()
	if err := w.listen(ctx); err != nil {
		return err
	}
	w.background.Go(func() { w.watch(ctx) })
	for i := range lines {
		err := w.do(ctx, &lines[i])
		if err == nil {
			err = w.awaitHeard(ctx)
		}
		if err != nil {
			w.tell(ctx)
			return fmt.Errorf("line %d: %s: %w", lines[i].number, lines[i].text, err)
		}
	}
	return nil
}

func (w *world) do(ctx context.Context, l *line) error {
	switch step := steps[l.command]; {
	case l.command == "expect":
		return w.expect(ctx, l)
	case l.command == "hold":
		return w.hold(ctx, l)
	case step != nil:
		return step(w, ctx, l)
	}
	return fmt.Errorf("unknown command")
}

// uniqueName is the name of a script's namespace, which differs from run to run.
func uniqueName(script string) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(script), os.Getpid())
}

// tellMost bounds how many lines a failure is told in.
const tellMost = 12

// tell logs what the cluster says of the scenario's pods and gangs; most say the same.
func (w *world) tell(ctx context.Context) {
	said := map[string]int{}
	for _, p := range w.everyPod() {
		reason, message := scheduledCondition(p)
		if p.Spec.NodeName != "" {
			reason, message = string(p.Status.Phase), "bound"
		} else if seat := p.Status.NominatedNodeName; seat != "" {
			reason += ", nominated to " + seat
		}
		said[fmt.Sprintf("%s: %s: %s", p.Labels[setLabel], reason, message)]++
	}
	lines := slices.Sorted(maps.Keys(said))
	for _, line := range lines[:min(len(lines), tellMost)] {
		w.t.Logf("%d pods of %s", said[line], line)
	}
	if len(lines) > tellMost {
		w.t.Logf("and %d more such lines", len(lines)-tellMost)
	}
	groups, err := w.dynamic.Resource(podGroups).Namespace(w.name).List(ctx, metav1.ListOptions{Limit: tellMost})
	if err != nil {
		w.t.Logf("listing PodGroups: %v", err)
		return
	}
	for i := range groups.Items {
		w.t.Logf("PodGroup %s: %v", groups.Items[i].GetName(), groups.Items[i].Object["status"])
	}
}

func listScenario(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: scenarioLabel + "=" + name}
}

// clean removes what the scenario made in the cluster, so that it does not weigh on the others.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0),
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	everything := metav1.ListOptions{}
	for _, namespace := range []string{w.name, w.name + "-b"} {
		// What makes pods goes first, or they would come back.
		_ = w.client.AppsV1().ReplicaSets(namespace).DeleteCollection(ctx, now, everything)
		_ = w.client.AppsV1().StatefulSets(namespace).DeleteCollection(ctx, now, everything)
		_ = w.client.BatchV1().Jobs(namespace).DeleteCollection(ctx, now, everything)
		_ = w.client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, everything)
		_ = w.client.ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, now, everything)
		_ = w.dynamic.Resource(podGroups).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)
	}
	for _, remove := range w.clusterWide {
		remove(ctx)
	}
	_ = w.client.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.SchedulingV1().PriorityClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
}
