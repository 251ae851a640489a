package coscheduling_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
)

// TestScenarios runs every script in testdata against the real API server and the real scheduler process: first those that
// need the machine, then in every box, which is stopped when it has run them, first those that disturb the others, one after the
// other, then the others.
func TestScenarios(t *testing.T) {
	t.Parallel()
	all, err := scripts()
	if err != nil {
		t.Fatalf("reading the scenarios: %v", err)
	}
	run := func(s script) {
		t.Run(s.name, func(t *testing.T) { runScenario(t, s.in.start(t), s.text) })
	}
	byBox := map[*box][]script{}
	for _, s := range all {
		if s.alone {
			run(s)
		} else {
			byBox[s.in] = append(byBox[s.in], s)
		}
	}
	slots := make(chan struct{}, atATime)
	inSlot := func(s script) {
		slots <- struct{}{}
		defer func() { <-slots }()
		run(s)
	}
	running, stopped := make(chan struct{}, boxesAtATime), sync.WaitGroup{}
	for _, b := range boxes {
		running <- struct{}{}
		stopped.Go(func() {
			defer func() { <-running }()
			runIn(byBox[b], inSlot)
			if err := b.stop(); err != nil {
				t.Errorf("stopping the sandbox: %v", err)
			}
		})
	}
	stopped.Wait()
}

// runIn runs the scripts of a box.
func runIn(scripts []script, run func(script)) {
	var others sync.WaitGroup
	defer others.Wait()
	for _, disturbing := range []bool{true, false} {
		for _, s := range scripts {
			switch {
			case s.disturbing != disturbing:
			case disturbing:
				run(s)
			default:
				others.Go(func() { run(s) })
			}
		}
	}
}

// scenarioWithin only ends a scenario that hangs: the limits of its commands, times slack, are of the machine's time, of which little
// may pass in a real minute.
const scenarioWithin = 20 * time.Minute

func runScenario(t *testing.T, box *sandbox.Sandbox, text string) {
	lines, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	name = fmt.Sprintf("%s-%d", name, os.Getpid())
	w, err := newWorld(t, box, name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scenarioWithin)
	w.background.Go(func() { w.watch(ctx) })
	defer func() {
		cancel()
		w.background.Wait()
		w.clean()
	}()
	for i := range lines {
		l := &lines[i]
		var err error
		switch step := steps[l.command]; {
		case l.command == "expect":
			err = w.expect(ctx, l)
		case l.command == "hold":
			err = w.hold(ctx, l)
		case step != nil:
			err = step(w, ctx, l)
		default:
			err = fmt.Errorf("unknown command")
		}
		if err != nil {
			w.tell(ctx)
			t.Fatalf("line %d: %s: %v", l.number, l.text, err)
		}
	}
}

// tellMost bounds how many lines a failure is told in.
const tellMost = 12

// tell logs what the cluster says of the scenario's pods and gangs, most of which say the same.
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
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
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
	_ = w.client.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.SchedulingV1().PriorityClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
	_ = w.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
}
