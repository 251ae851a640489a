package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/reload"
)

// requestTimeout bounds each request that is about the process itself. An API server that stalls for some seconds must
// not lose a warning, nor let a leader believe that it does not lead.
const requestTimeout = 20 * time.Second

// process is what this process does for itself beside scheduling: it tells users about its own state, and ends in
// order.
type process struct {
	config *schedulerserverconfig.CompletedConfig
	gate   *reload.Gate
	// part is nil without leader election.
	part *part
}

// Leads reports whether this process leads other replicas, by what the lease says.
func (p *process) Leads(ctx context.Context) bool {
	lease, _, err := p.ownLease(ctx)
	return err == nil && lease != nil
}

// Quiesce stops taking pods, waits for the bindings under way and gives the lease back.
func (p *process) Quiesce(ctx context.Context) {
	p.gate.Close(ctx)
	if p.part == nil || ctx.Err() != nil {
		return // the leader election gives the lease back when ctx has ended
	}
	informers.HandOver(ctx)
	p.part.leave()
	if err := p.release(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Giving the lease back failed, it will expire")
	}
}

// release empties the lease if it is held by this process.
func (p *process) release(ctx context.Context) error {
	lease, client, err := p.ownLease(ctx)
	if err != nil || lease == nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1)
	lease.Spec.RenewTime, lease.Spec.AcquireTime = &now, &now
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := client.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating the lease: %w", err)
	}
	return nil
}

// ownLease returns the lease of the leader election if this process holds it, nil if it does not. The client has a
// limit of its own: the scheduler's may be used up by bindings.
func (p *process) ownLease(ctx context.Context) (*coordinationv1.Lease, coordinationclient.LeaseInterface, error) {
	election := p.config.LeaderElection
	if election == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all, err := clientset.NewForConfig(p.config.KubeConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	client := all.CoordinationV1().Leases(p.lease().Namespace)
	lease, err := client.Get(ctx, p.lease().Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the lease: %w", err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != election.Lock.Identity() {
		return nil, nil, nil
	}
	return lease, client, nil
}

func (p *process) lease() corev1.ObjectReference {
	election := p.config.ComponentConfig.LeaderElection
	return corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: election.ResourceNamespace,
		Name: election.ResourceName,
	}
}

// Warn writes an event about the lease, the one object that every replica knows; without leader election there is none.
func (p *process) Warn(ctx context.Context, reason, note string) {
	if p.config.LeaderElection == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	about := p.lease()
	if lease, err := p.config.Client.CoordinationV1().Leases(about.Namespace).Get(ctx, about.Name,
		metav1.GetOptions{}); err == nil {
		about.UID = lease.UID
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: about.Name + "-", Namespace: about.Namespace},
		EventTime:  metav1.NowMicro(), ReportingController: "berth-scheduler", ReportingInstance: host,
		Action: "Starting", Reason: reason, Regarding: about, Note: truncated(note), Type: corev1.EventTypeWarning,
	}
	_, err = p.config.Client.EventsV1().Events(about.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "Writing an event failed", "reason", reason)
	}
}

// truncated keeps a note within the API's limit of 1,024 bytes.
func truncated(note string) string {
	const limit = 1020
	if len(note) <= limit {
		return note
	}
	// A cut through a character would make the event one that the API server cannot read.
	return strings.ToValidUTF8(note[:limit], "") + "…"
}
