package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
)

const (
	// refusedPause is the pause after a namespace has taken no stand-in, which doubles up to refusedPauseMost.
	refusedPause     = 5 * time.Second
	refusedPauseMost = 5 * time.Minute
	// unservedPause is how long no stand-in is made after the cluster had no place for any.
	unservedPause = time.Minute
	// everywhere stands for all namespaces, which is no namespace's name.
	everywhere = ""
)

// standInRefusals holds what keeps stand-ins from being made: what one namespace refuses is no reason to make none in others.
type standInRefusals struct {
	mu sync.Mutex
	// never holds the gangs for which none can be made whatever happens.
	never map[gang.ID]bool
	// by holds the pauses by namespace.
	by map[string]*standInPause
}

type standInPause struct {
	length time.Duration
	until  time.Time
	// skipped are the gangs for which none was made meanwhile.
	skipped map[gang.ID]bool
}

// refused reports whether no stand-in is to be made for the gang now, and remembers to try it again when it may be.
func (r *standInRefusals) refused(id gang.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.never[id] {
		return true
	}
	for _, namespace := range []string{id.Namespace, everywhere} {
		if p := r.by[namespace]; p != nil && now.Before(p.until) {
			p.skipped[id] = true
			return true
		}
	}
	return false
}

// ban remembers that none can ever be made for the gang, and reports whether that is new.
func (r *standInRefusals) ban(id gang.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.never == nil {
		r.never = map[gang.ID]bool{}
	}
	known := r.never[id]
	r.never[id] = true
	return !known
}

// pause lets none be made in the namespace for a while, longer each time in a row, and reports whether it is the first time.
func (r *standInRefusals) pause(namespace string, id gang.ID, shortest time.Duration, now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*standInPause{}
	}
	p := r.by[namespace]
	if first = p == nil; first {
		p = &standInPause{skipped: map[gang.ID]bool{}}
		r.by[namespace] = p
	}
	p.skipped[id] = true
	if !now.Before(p.until) {
		p.length = min(max(2*p.length, shortest), refusedPauseMost)
		p.until = now.Add(p.length)
	}
	return first
}

// made ends the pauses of the namespace, in which one could be made, and returns the gangs that were skipped meanwhile.
func (r *standInRefusals) made(namespace string) []gang.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []gang.ID
	for _, name := range []string{namespace, everywhere} {
		if p := r.by[name]; p != nil {
			ids = slices.AppendSeq(ids, maps.Keys(p.skipped))
			delete(r.by, name)
		}
	}
	return ids
}

// over returns one of the gangs that were skipped in each pause that is over, to find out whether a stand-in is taken now.
func (r *standInRefusals) over(now time.Time) []gang.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []gang.ID
	for _, p := range r.by {
		if now.Before(p.until) {
			continue
		}
		for id := range p.skipped {
			ids = append(ids, id)
			delete(p.skipped, id)
			break
		}
	}
	return ids
}

// forget forgets a gang that does not exist any more.
func (r *standInRefusals) forget(id gang.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.never, id)
	for namespace, p := range r.by {
		if delete(p.skipped, id); namespace == id.Namespace && len(p.skipped) == 0 {
			delete(r.by, namespace)
		}
	}
}

func (s *statusWriter) createStandIn(ctx context.Context, id gang.ID, v gang.View, now time.Time) error {
	if s.refusals.refused(id, now) {
		return nil
	}
	if wrong := validation.IsDNS1123Subdomain(id.Name); len(wrong) > 0 {
		s.banStandIn(ctx, id, v, fmt.Sprintf("%q is no name of an object: %s", id.Name, strings.Join(wrong, "; ")))
		return nil
	}
	pg := standInFor(id, v.Undeclared, s.members(id))
	if len(pg.OwnerReferences) == 0 {
		return nil
	}
	return s.judgeStandIn(ctx, id, v, s.groups.create(ctx, pg), now)
}

// judgeStandIn draws conclusions from what came of making a stand-in.
func (s *statusWriter) judgeStandIn(ctx context.Context, id gang.ID, v gang.View, err error, now time.Time) error {
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		for _, skipped := range s.refusals.made(id.Namespace) {
			s.mark(skipped)
		}
		return nil
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), namespaceGone(err):
		return nil
	case !byAdmission(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		s.banStandIn(ctx, id, v, err.Error())
		return nil
	case !byAdmission(err) && apierrors.IsNotFound(err):
		// The cluster does not serve them.
		if s.refusals.pause(everywhere, id, unservedPause, now) {
			klog.FromContext(ctx).Error(err, "No PodGroup can be made for gangs by labels; they are scheduled without one", "gang", id)
		}
		return nil
	case apierrors.IsForbidden(err), apierrors.IsConflict(err), apierrors.ReasonForError(err) != "":
		// A quota, a right that is missing, or a webhook.
		if s.refusals.pause(id.Namespace, id, refusedPause, now) {
			klog.FromContext(ctx).Error(err, "No PodGroup can be made for the gangs of a namespace; they are scheduled without one", "gang", id)
			s.tellStandIn(ctx, v, err.Error())
		}
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		// A webhook that does not answer holds each request for long, so they are as rare as those that are refused.
		if s.refusals.pause(id.Namespace, id, refusedPause, now) {
			s.tellStandIn(ctx, v, fmt.Sprintf("the API server, or a webhook that it asks, gave no answer within %s", writeTimeout))
		}
	}
	// There was no answer.
	return fmt.Errorf("making PodGroup %s: %w", id, err)
}

// banStandIn gives up the stand-in of the gang and says so once.
func (s *statusWriter) banStandIn(ctx context.Context, id gang.ID, v gang.View, why string) {
	if s.refusals.ban(id) {
		klog.FromContext(ctx).Info("A gang by labels has no PodGroup", "gang", id, "reason", why)
		s.tellStandIn(ctx, v, why)
	}
}

// tellStandIn says on the oldest member why the gang has no PodGroup.
func (s *statusWriter) tellStandIn(ctx context.Context, v gang.View, why string) {
	if pod := s.pods.any(v.Any); pod != nil {
		s.recorder.WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "NoPodGroup", "Scheduling",
			"the gang is scheduled, but has no PodGroup to show its state: %s", why)
	}
}

// byAdmission reports whether a policy or a webhook has refused the request, which may say "invalid" and change its mind.
func byAdmission(err error) bool {
	return strings.Contains(err.Error(), "denied request") || strings.Contains(err.Error(), "denied the request")
}

// namespaceGone reports whether the namespace does not exist any more, as opposed to the kind.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}
