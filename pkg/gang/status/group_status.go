package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// progress is how far a gang has come.
type progress struct {
	step step
	// why is what keeps it from starting or, once it has started, how many members are bound.
	why                        string
	running, succeeded, failed int
	// bound is set if a member is bound, and reached if the minimum is bound or has succeeded or failed.
	bound, reached bool
	generation     int64
	now            time.Time
	// settled counts, by PodGroup, the members of a tree of native groups that have a node or have succeeded.
	settled map[string]int
}

// step is what a gang waits for, or what it does.
type step int

const (
	// incomplete gangs have too few members.
	incomplete step = iota
	// unschedulable gangs do not fit.
	unschedulable
	// starting gangs are planned or being bound.
	starting
	// scheduled gangs have their minimum bound, running gangs have it running, and in ended gangs it has succeeded and no
	// member is bound.
	scheduled
	running
	ended
	// short gangs have started and lost members.
	short
)

// progressOf reads the progress of a gang from its state.
func progressOf(s *State) progress {
	v := &s.View
	p := progress{bound: v.Count[gang.Bound] > 0, running: v.Running, succeeded: v.Count[gang.Succeeded],
		failed: v.Count[gang.Failed], why: settled(v, v.Minimum)}
	least := v.Minimum.Total
	p.reached = v.Count[gang.Bound]+p.succeeded+p.failed >= least
	switch {
	case least > 0 && p.succeeded >= least && !p.bound:
		p.step = ended
	case v.Degraded:
		p.step = short
	case least > 0 && p.running+p.succeeded >= least && v.Met():
		p.step = running
	case v.Met():
		p.step = scheduled
	case v.Reason != nil:
		p.step, p.why = unschedulable, v.Reason.String()
	case !v.Quorum():
		p.why = existing(v, v.Minimum)
	default:
		p.step = starting
	}
	return p
}

// planned reports whether the gang is being planned, so that its status will change in a moment.
func planned(v *gang.View) bool {
	return v.Quorum() && v.Reason == nil && v.Holding == 0 && v.Count[gang.Bound] == 0 && !v.Met()
}

// withoutText is equal for progress that differs only in text.
func (p *progress) withoutText() string {
	return fmt.Sprint(p.step, p.bound, p.reached, p.running, p.succeeded, p.failed, p.settled)
}

// hasStarted reports whether the gang has ever started.
func (p *progress) hasStarted() bool { return p.step >= scheduled }

// writeForeign writes the status of the group of Kubernetes or another scheduler that declares the gang. If only the
// text differs, it returns after what time that may be written.
func (c *Controller) writeForeign(ctx context.Context, id gang.ID, s *State, r *record,
	now time.Time) (time.Duration, error) {
	owners, group := c.api.Owners, c.source.Members.Declared(id)
	if owners == nil || !s.Known || s.Minimum.Total == 0 || group == nil || planned(&s.View) {
		return 0, nil
	}
	p := progressOf(s)
	p.now, p.settled = now, settledIn(group, s.Members)
	parts := slices.DeleteFunc(owners.parts(id, &p), func(of part) bool { return r.foreign[of.key] == of.text })
	if len(parts) > 0 && r.foreignKind == p.withoutText() {
		if pause := r.reword(c.messages, s, now); pause > 0 {
			return pause, nil
		}
	}
	for i := range parts {
		if err := owners.write(ctx, id, &parts[i]); err != nil {
			return 0, err
		}
		if r.foreign == nil {
			r.foreign = map[grouptree.Key]string{}
		}
		r.foreign[parts[i].key] = parts[i].text
	}
	r.foreignKind = p.withoutText()
	return 0, nil
}

// part is an object, and the progress to write to it.
type part struct {
	kind     *ownerKind
	about    *v1.ObjectReference
	progress *progress
	// key is set for an object of a tree. text is what record.foreign keeps.
	key  grouptree.Key
	text string
}

// parts returns the object that declares the gang and, if that is a tree, the objects in it, each with its progress.
func (o *Owners) parts(id gang.ID, p *progress) []part {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.gangs[id]
	switch {
	case g == nil || g.object() == nil:
		return nil
	case g.owner.Kind == read.CompositeGroup:
		return o.partsOfTree(g, p)
	}
	return []part{{kind: g.kind, about: g.object(), progress: p, text: p.withoutText() + p.why}}
}

// write writes the progress of a part. Other programs write its status as well, so that it is read first. Without the
// right to write, nothing happens: the scheduler reports missing rights at its start.
func (o *Owners) write(ctx context.Context, id gang.ID, part *part) error {
	about, p, resource := part.about, part.progress, part.kind.StatusResource()
	if resource == "" {
		return nil
	}
	var subresources []string
	if _, subresource, has := strings.Cut(resource, "/"); has {
		subresources = []string{subresource}
	}
	version, _ := schema.ParseGroupVersion(about.APIVersion)
	objects := o.client.Resource(version.WithResource(part.kind.Resource)).Namespace(about.Namespace)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	object, err := objects.Get(ctx, about.Name, metav1.GetOptions{})
	if err == nil && object.GetUID() == about.UID {
		before, _ := object.Object["status"].(map[string]any)
		after := runtime.DeepCopyJSON(map[string]any{"status": before})["status"].(map[string]any)
		if after == nil {
			after = map[string]any{}
		}
		p.generation = object.GetGeneration()
		p.fill(after, part.kind.Kind)
		if equality.Semantic.DeepEqual(before, after) {
			return nil
		}
		patch, marshalErr := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(),
			"resourceVersion": object.GetResourceVersion()}, "status": after})
		if marshalErr != nil {
			return fmt.Errorf("encoding the status of %s: %w", about.Name, marshalErr)
		}
		_, err = objects.Patch(ctx, about.Name, apitypes.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	}
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		klog.FromContext(ctx).V(2).Info("The status of a group is not written", "gang", id, "err", err)
		return nil
	}
	return fmt.Errorf("writing the status of %s %s/%s: %w", about.Kind, about.Namespace, about.Name, err)
}

// setCondition sets the condition, whose values are all text, in the status. If its status does not change, the
// transition time stays.
func setCondition(status map[string]any, condition map[string]any, now time.Time) {
	condition["lastTransitionTime"] = metav1.NewTime(now).UTC().Format(time.RFC3339)
	conditions, _ := status["conditions"].([]any)
	for i, c := range conditions {
		old, _ := c.(map[string]any)
		if old["type"] != condition["type"] {
			continue
		}
		if old["status"] == condition["status"] && old["lastTransitionTime"] != nil {
			condition["lastTransitionTime"] = old["lastTransitionTime"]
		}
		conditions[i] = condition
		return
	}
	status["conditions"] = append(conditions, condition)
}

// hasCondition reports whether the status has a condition of the type, and whether it is true.
func hasCondition(status map[string]any, kind string) (has, holds bool) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if one, _ := c.(map[string]any); one["type"] == kind {
			return true, one["status"] == "True"
		}
	}
	return false, false
}

// reasonScheduled is the reason of the condition of groups that have started; Kubernetes defines none.
const reasonScheduled = "Scheduled"

// scheduledCondition is a condition of native groups that tells whether the gang has started.
func (p *progress) scheduledCondition(kind string) map[string]any {
	c := map[string]any{"type": kind, "status": "False", "message": p.why, "observedGeneration": p.generation}
	switch {
	case p.hasStarted() && p.step != short:
		c["status"], c["reason"] = "True", reasonScheduled
	case p.step == short:
		c["reason"] = "MembersLost"
	case p.step == unschedulable:
		c["reason"] = schedulingv1beta1.PodGroupReasonUnschedulable
	case p.step == incomplete:
		c["reason"] = "TooFewMembers"
	default:
		c["reason"] = "InProgress"
	}
	return c
}

// fill sets the fields of the status in which users of the kind look for the progress.
func (p *progress) fill(status map[string]any, kind string) {
	switch kind {
	case read.NativeGroup:
		p.fillInitially(status, schedulingv1beta1.PodGroupInitiallyScheduled)
	case read.CompositeGroup:
		p.fillInitially(status, "Composite"+schedulingv1beta1.PodGroupInitiallyScheduled)
	case read.VolcanoGroup:
		p.fillVolcano(status)
	}
}

// fillInitially sets the condition of native groups, which stays true.
func (p *progress) fillInitially(status map[string]any, condition string) {
	if _, scheduled := hasCondition(status, condition); !scheduled && p.step != starting {
		setCondition(status, p.scheduledCondition(condition), p.now)
	}
}

// fillVolcano sets the phase, numbers and conditions of Volcano's PodGroups. Phases mean what they mean to Volcano: a
// group is Running if the minimum has a node or has ended, and Completed if all of these have ended.
func (p *progress) fillVolcano(status map[string]any) {
	switch {
	case p.running > 0 && (p.step == short || p.step < starting):
		status["phase"] = "Unknown"
	case p.reached && p.bound:
		status["phase"] = "Running"
	case p.reached:
		status["phase"] = "Completed"
	case p.step != starting:
		// Volcano never goes back from Inqueue to Pending.
		if status["phase"] != "Inqueue" {
			status["phase"] = "Pending"
		}
	default:
		status["phase"] = "Inqueue"
	}
	for key, n := range map[string]int{"running": p.running, "succeeded": p.succeeded, "failed": p.failed} {
		if n == 0 {
			// Volcano omits zeros. In a merge patch, null removes a number.
			if status[key] != nil {
				status[key] = nil
			}
			continue
		}
		status[key] = int64(n)
	}
	set := func(kind string, holds bool, reason string) {
		if has, _ := hasCondition(status, kind); !has && !holds {
			return
		}
		c := map[string]any{"type": kind, "status": "False"}
		if holds {
			c = map[string]any{"type": kind, "status": "True", "reason": reason, "message": p.why}
		}
		setCondition(status, c, p.now)
	}
	reason := "NotEnoughResources"
	if p.step == incomplete {
		reason = "NotEnoughTasks"
	}
	set("Unschedulable", p.step == unschedulable || p.step == incomplete, reason)
	set("Scheduled", p.hasStarted() && p.step != short, "tasks in gang are ready to be scheduled")
}
