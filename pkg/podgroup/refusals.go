package podgroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// refusedPause is the pause after a namespace has refused a PodGroup, which doubles up to refusedPauseMost.
	refusedPause     = 5 * time.Second
	refusedPauseMost = 5 * time.Minute
	// unservedPause is the pause after the cluster did not serve PodGroups.
	unservedPause = time.Minute
	// everywhere stands for all namespaces, which is no namespace's name.
	everywhere = ""
)

// refusals are the namespaces that refuse PodGroups: what one refuses is no reason to create none in others.
type refusals struct {
	mu     sync.Mutex
	paused map[string]refusal
}

type refusal struct {
	length time.Duration
	until  time.Time
}

// pause returns after what time a PodGroup may be created in the namespace, 0 if now.
func (r *refusals) pause(namespace string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.paused[namespace].until.Sub(now), r.paused[everywhere].until.Sub(now))
}

// refuse pauses the namespace, for longer each time in a row, and reports whether it is the first time.
func (r *refusals) refuse(namespace string, shortest time.Duration, now time.Time) (pause time.Duration, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Namespaces in which no gang is left are forgotten.
	maps.DeleteFunc(r.paused, func(_ string, p refusal) bool { return now.Sub(p.until) > refusedPauseMost })
	p, known := r.paused[namespace]
	if !now.Before(p.until) { // else several were under way
		p.length = min(max(2*p.length, shortest), refusedPauseMost)
		p.until = now.Add(p.length)
	}
	if r.paused == nil {
		r.paused = map[string]refusal{}
	}
	r.paused[namespace] = p
	return p.until.Sub(now), !known
}

// accept ends the pauses of the namespace.
func (r *refusals) accept(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paused, namespace)
	delete(r.paused, everywhere)
}

// create creates the PodGroup of the gang, and returns after what time to try again.
func (g *generator) create(ctx context.Context, id gang.ID, s *State, r *record, now time.Time) (again time.Duration,
	err error) {
	if r.uncreatable {
		return 0, nil
	}
	if wrong := validation.IsDNS1123Subdomain(id.Name); len(wrong) > 0 {
		g.giveUp(ctx, id, s, r, fmt.Sprintf("%q is no name of an object: %s", id.Name, strings.Join(wrong, "; ")))
		return 0, nil
	}
	pg := generatedPodGroup(id, s.Undeclared, s.Members)
	if len(pg.OwnerReferences) == 0 {
		return 0, nil
	}
	if pause := g.refusals.pause(id.Namespace, now); pause > 0 {
		return pause, nil
	}
	return g.handleCreateResult(ctx, id, s, r, g.api.create(ctx, pg))
}

// handleCreateResult draws conclusions from the result of creating a PodGroup. The others of the namespace wait if it
// was refused.
func (g *generator) handleCreateResult(ctx context.Context, id gang.ID, s *State, r *record,
	err error) (again time.Duration, _ error) {
	now, logger := time.Now(), klog.FromContext(ctx)
	var first bool
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		g.refusals.accept(id.Namespace)
		return 0, nil
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), namespaceGone(err):
		return 0, nil
	case !byAdmission(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		g.giveUp(ctx, id, s, r, err.Error())
		return 0, nil
	case !byAdmission(err) && apierrors.IsNotFound(err):
		// The cluster does not serve them.
		if again, first = g.refusals.refuse(everywhere, unservedPause, now); first {
			logger.Error(err, "No PodGroup can be made for gangs by labels; they are scheduled without one", "gang", id)
		}
	case apierrors.ReasonForError(err) != "":
		// A quota, a right that is missing, or a webhook.
		if again, first = g.refusals.refuse(id.Namespace, refusedPause, now); first {
			logger.Error(err, "No PodGroup can be made for the gangs of a namespace; they are scheduled without one", "gang", id)
			g.reportNoPodGroup(ctx, s, err.Error())
		}
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		// A webhook that does not answer holds each request for long, so that requests are as rare as those that are
		// refused.
		if again, first = g.refusals.refuse(id.Namespace, refusedPause, now); first {
			g.reportNoPodGroup(ctx, s, fmt.Sprintf("the API server, or a webhook that it asks, gave no answer within %s",
				writeTimeout))
		}
	default:
		return 0, fmt.Errorf("creating PodGroup %s: %w", id, err)
	}
	return again, nil
}

// giveUp creates no PodGroup for the gang any more, and reports why once.
func (g *generator) giveUp(ctx context.Context, id gang.ID, s *State, r *record, why string) {
	r.uncreatable = true
	klog.FromContext(ctx).Info("A gang by labels has no PodGroup", "gang", id, "reason", why)
	g.reportNoPodGroup(ctx, s, why)
}

// reportNoPodGroup records on the oldest member why the gang has no PodGroup.
func (g *generator) reportNoPodGroup(ctx context.Context, s *State, why string) {
	if pod := s.example(); pod != nil {
		g.recorder.warn(ctx, pod, "NoPodGroup", "the gang is scheduled, but has no PodGroup to show its state: "+why)
	}
}

// byAdmission reports whether a policy or a webhook has refused the request, which may say "invalid" and change its
// mind.
func byAdmission(err error) bool {
	return strings.Contains(err.Error(), "denied request") || strings.Contains(err.Error(), "denied the request")
}

// namespaceGone reports whether the namespace does not exist any more, as opposed to the kind.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}
