package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/sandbox"
)

// schedulerLease is the leader election in the scheduler's configuration.
type schedulerLease struct {
	elect           bool
	namespace, name string
}

// schedulerArgs are the scheduler's flags.
func schedulerArgs(opts sandbox.Options, keys sandbox.Keys, port int, emulation string) []string {
	layout := sandbox.Layout(opts.Dir)
	args := []string{
		"--config=" + layout.SchedulerConfig(), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + keys.Cert(sandbox.KeyServer), "--tls-private-key-file=" + keys.Key(sandbox.KeyServer),
		"--client-ca-file=" + keys.Cert(sandbox.KeyCA),
		"--authentication-kubeconfig=" + layout.SchedulerKubeconfig(),
		"--authorization-kubeconfig=" + layout.SchedulerKubeconfig(),
		"--v=2",
	}
	if emulation != "" {
		args = append(args, emulationFlag+emulation)
	}
	// As in the manifests, which give the reason. If a gate is named twice, the last value counts.
	gates := slices.Concat([]string{"NominatedNodeNameForExpectation=false"}, opts.FeatureGates,
		opts.SchedulerFeatureGates)
	return append(args, "--feature-gates="+strings.Join(gates, ","))
}

// grant gives the scheduler the rights for the lease in its configuration, whose name may differ from that in the
// shipped rights.
func (l schedulerLease) grant(ctx context.Context, admin kubernetes.Interface) error {
	if !l.elect {
		return nil
	}
	meta := metav1.ObjectMeta{Name: "berth-sandbox-lease", Namespace: l.namespace}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{l.name},
		Verbs: []string{"get", "update"},
	}, {
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"create"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "berth-scheduler",
			Namespace: metav1.NamespaceSystem}},
	}
	if _, err := admin.RbacV1().Roles(l.namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("granting the scheduler its lease %s/%s: %w", l.namespace, l.name, err)
	}
	if _, err := admin.RbacV1().RoleBindings(l.namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("granting the scheduler its lease %s/%s: %w", l.namespace, l.name, err)
	}
	return nil
}

// release deletes the lease of a scheduler that has died, so that the next one does not wait 15 s for its end.
func (l schedulerLease) release(ctx context.Context, admin kubernetes.Interface) {
	if !l.elect {
		return
	}
	err := admin.CoordinationV1().Leases(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Releasing the lease of the scheduler that died failed", "lease",
			klog.KRef(l.namespace, l.name))
	}
}

// acquiredSince reports whether a scheduler acquired the lease after a moment, or needs none.
func (l schedulerLease) acquiredSince(ctx context.Context, admin kubernetes.Interface, since time.Time) (bool, error) {
	if !l.elect {
		return true, nil
	}
	lease, err := admin.CoordinationV1().Leases(l.namespace).Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the scheduler's lease: %w", err)
	}
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" &&
		lease.Spec.AcquireTime != nil && lease.Spec.AcquireTime.After(since), nil
}
