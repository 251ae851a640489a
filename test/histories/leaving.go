package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// leaving are the pods that were deleted and take their time to end, as a kubelet and a Job's controller see them.
type leaving struct {
	mu sync.Mutex
	// marked are those that were deleted since the last look, and ending those whose end is awaited.
	marked, ending []*v1.Pod
}

// observe takes a change that the API has made. It is called with the API locked.
func (l *leaving) observe(e memapi.Event) {
	pod, ok := e.Object.(*v1.Pod)
	if old, was := e.Old.(*v1.Pod); ok && was && e.Type == memapi.Modified && pod.DeletionTimestamp != nil &&
		old.DeletionTimestamp == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.marked = append(l.marked, pod)
	}
}

// look returns the pods that were deleted since the last call, and those whose time is over.
func (l *leaving) look() (marked, ended []*v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	marked, l.marked = l.marked, nil
	l.ending = slices.DeleteFunc(append(l.ending, marked...), func(pod *v1.Pod) bool {
		late, _ := strconv.Atoi(pod.Annotations[history.LateKey]) // no annotation is 0
		over := !pod.DeletionTimestamp.Add(time.Duration(late) * time.Second).After(time.Now())
		if over {
			ended = append(ended, pod)
		}
		return over
	})
	return marked, ended
}

// any reports whether pods are on their way out.
func (l *leaving) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.marked)+len(l.ending) > 0
}

// pass lets time go by. Pods that were evicted come back meanwhile, and what belonged to them goes.
func (w *world) pass(d time.Duration) error {
	for d > 0 {
		slice := min(d, returnAfter)
		if w.local {
			slice = min(slice, volumesAfter)
		}
		time.Sleep(slice) //nolint:forbidigo // virtual time
		d -= slice
		w.checker.Tick()
		w.collect()
		if err := w.collectOfJobs(); err != nil {
			return err
		}
		marked, ended := w.leaving.look()
		for _, pod := range marked {
			w.noteEviction(pod)
			// A Job makes another pod as soon as one is on its way out, a StatefulSet when the name is free.
			if p := w.made[pod.Name]; p != nil && p.Returns && !p.KeepsName {
				w.again(p, false)
			}
		}
		for _, pod := range ended {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			if now, ok := w.api.Get(pods, name).(*v1.Pod); ok && now.UID == pod.UID {
				w.api.Delete(pods, name)
			}
		}
		for _, pod := range w.checker.Gone() {
			if pod.DeletionTimestamp == nil {
				w.noteEviction(pod)
			}
			w.api.Delete(claims, claimOf(pod))
			w.giveBackVolume(pod)
			if p := w.made[pod.Name]; p != nil && p.Returns && (p.KeepsName || pod.DeletionTimestamp == nil) {
				w.again(p, p.KeepsName)
			}
		}
		if w.local {
			if err := w.bindVolumes(); err != nil {
				return err
			}
		}
		if w.runs {
			w.lookIfAtRest()
		}
	}
	return nil
}

// collect removes pods of nodes that are gone, to which they may have been bound after that.
func (w *world) collect() {
	for _, node := range w.removed {
		for _, obj := range w.api.List(pods) {
			if pod := obj.(*v1.Pod); pod.Spec.NodeName == node.Name && w.api.Get(nodes, node) == nil {
				w.api.Delete(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
			}
		}
	}
}

func (w *world) noteEviction(pod *v1.Pod) {
	if invariants.Evicted(pod) {
		w.evicted = time.Now()
		w.evictions++
	}
}

// again makes another pod of the same kind, as its controller does.
func (w *world) again(p *history.Pod, sameName bool) {
	w.returned++
	next := *p
	next.Times++
	if !sameName {
		next.Name = fmt.Sprintf("%s-again-%d", p.Name, w.returned)
	}
	// The names are free, so that this cannot fail.
	_ = w.createPod(&next)
}

// remove deletes a pod as a user does.
func (w *world) remove(name string) error {
	err := w.user.Resource(pods).Namespace(history.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// claimOf names the claim of a pod, which need not have one.
func claimOf(pod *v1.Pod) types.NamespacedName {
	name := types.NamespacedName{Namespace: pod.Namespace}
	for _, claim := range pod.Spec.ResourceClaims {
		name.Name = *claim.ResourceClaimName
	}
	return name
}
