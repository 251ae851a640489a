package coscheduling_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The lease by which the scheduler under test leads, as in the configurations in testdata.
const leaseNamespace, leaseName = metav1.NamespaceSystem, "berth-scheduler"

// doKill kills the scheduler; one that is just being started again is waited for.
func (w *world) doKill(ctx context.Context, l *line) error {
	if err := w.catch(ctx, l); err != nil {
		return err
	}
	return w.eventually(ctx, 10*time.Second, func() error {
		pid, err := w.sandbox.PID("scheduler")
		if err != nil {
			return err
		}
		w.lose()
		defer w.lose()
		return syscall.Kill(pid, syscall.SIGKILL)
	})
}

// doAway stops the process that holds etcd and the API server, and lets it go on after a while. It is in no state to be
// stopped by anything else meanwhile, so a process that outlives this one sees to it that it does go on.
func (w *world) doAway(ctx context.Context, l *line) error {
	d, err := time.ParseDuration(l.arg(0))
	if err != nil {
		return err
	}
	pid, err := w.sandbox.PID("control-plane")
	if err != nil {
		return err
	}
	if err := w.catch(ctx, l); err != nil {
		return err
	}
	guard := exec.Command("sh", "-c", fmt.Sprintf("sleep %d; kill -CONT %d", int(d.Seconds())+5, pid))
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := guard.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-guard.Process.Pid, syscall.SIGKILL)
		_ = guard.Wait()
	}()
	w.lose()
	defer w.lose()
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// catch waits until the first pod of a set has been bound, if the line says so.
func (w *world) catch(ctx context.Context, l *line) error {
	set := l.option("catching", "")
	if set == "" {
		return nil
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for bound := 0; bound == 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		w.mu.Lock()
		lister := w.lister
		w.mu.Unlock()
		if lister == nil {
			continue
		}
		pods, err := lister.List(labels.SelectorFromSet(labels.Set{setLabel: set}))
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				bound++
			}
		}
		if bound > 0 {
			w.t.Logf("%d of %d pods of %s are bound when it happens", bound, len(pods), set)
		}
	}
	return nil
}

// lose notes that no scheduler leads from now on, until one says so again.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lostAt = time.Now()
}

// led reports whether a scheduler leads.
func (w *world) led(ctx context.Context) bool {
	w.mu.Lock()
	lostAt := w.lostAt
	w.mu.Unlock()
	if lostAt.IsZero() {
		return true
	}
	lease, err := w.client.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || !lease.Spec.RenewTime.After(lostAt) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lostAt.Equal(lostAt) {
		w.lostAt = time.Time{}
	}
	return w.lostAt.IsZero()
}

// groupOf is the gang that the pod names, by the label of either form, or the set of one that is not declared.
func groupOf(pod *v1.Pod) string {
	if pod.Annotations[undeclared] == "true" {
		return "set:" + pod.Labels[setLabel]
	}
	if group := pod.Labels[groupLabel]; group != "" {
		return group
	}
	return pod.Labels[oldNameLabel]
}
