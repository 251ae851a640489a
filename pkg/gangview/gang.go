package gangview

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/runview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/workview"
)

// Keys of gangs that members carry themselves, the older form without a PodGroup.
const (
	gangNameLabel     = "pod-group.scheduling.sigs.k8s.io/name"
	MinAvailableLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// Of returns the gang that the pod is a member of by its own word, with its minimum where the pod itself carries that,
// else 0. A pod that means to be in a gang but says so wrongly is an error. OwnerPolicy.GangOf also knows the gangs of
// controllers whose pods say nothing.
func Of(pod *v1.Pod) (id gang.ID, minimum int, err error) {
	m, err := (*OwnerPolicy)(nil).GangOf(pod)
	return m.ID, m.Minimum, err
}

// labelledGang reads the labels that name a gang: that of a PodGroup, then the older form by labels alone.
func labelledGang(pod *v1.Pod) (Membership, error) {
	if name := pod.Labels[schedulingv1alpha1.PodGroupLabel]; name != "" {
		return Membership{ID: gang.ID{Namespace: pod.Namespace, Name: name}}, nil
	}
	name, named := pod.Labels[gangNameLabel]
	if !named {
		return Membership{}, nil
	}
	if name == "" {
		return Membership{}, &wellknown.BadValue{Object: "pod", Kind: "label", Key: gangNameLabel, Value: name,
			Allowed: "the name of a group"}
	}
	minAvailable, given := pod.Labels[MinAvailableLabel]
	minMember, ok := parseMinimum(minAvailable)
	if !ok {
		return Membership{}, &wellknown.BadValue{Object: "pod", Kind: "label", Key: MinAvailableLabel, Value: minAvailable,
			Missing: !given,
			Allowed: allowedMinimum}
	}
	return Membership{ID: gang.ID{Namespace: pod.Namespace, Name: name}, Minimum: minMember}, nil
}

// parseMinimum reads the minimum of a gang as a label or an annotation of its pods has it.
func parseMinimum(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n >= 1 && n <= maxMinMember
}

// Labels returns the labels; either of them makes a pod the member of a gang.
func Labels() []string { return []string{schedulingv1alpha1.PodGroupLabel, gangNameLabel} }

// maxTimeout is the longest that a pod may wait to be permitted.
const maxTimeout = 15 * time.Minute

// maxMinMember is the largest minimum that is believed; the CRD has the same bound.
const maxMinMember = 100000

var allowedMinimum = fmt.Sprintf("a whole number from 1 to %d", maxMinMember)

// Spec reads a PodGroup. Timeout replaces scheduleTimeoutSeconds where that is absent or 0, as in scheduler-plugins.
func Spec(pg *schedulingv1alpha1.PodGroup, timeout time.Duration) (gang.Spec, error) {
	roles, err := minMembersByRole(pg)
	if err != nil {
		return gang.Spec{}, err
	}
	if bad := Misstated(pg); bad != nil {
		return gang.Spec{}, bad
	}
	groups, err := groupsOf(pg)
	if err != nil {
		return gang.Spec{}, err
	}
	minimum := gang.Minimum{Total: max(int(pg.Spec.MinMember), 1), Roles: roles, Tree: groups}
	if groups != nil {
		groups.Roles = maps.Clone(roles)
		minimum.Roles = map[string]int{}
		groups.Always(minimum.Roles)
	}
	minimum.Total = minimum.Members()
	if minimum.Total > maxMinMember {
		return gang.Spec{}, &wellknown.BadValue{Object: "PodGroup " + pg.Name, Kind: "annotation", Key: wellknown.GroupsKey,
			Value: fmt.Sprint(minimum.Total, " pods"), Allowed: allowedMinimum}
	}
	s := gang.Spec{
		Minimum:    minimum,
		Created:    pg.CreationTimestamp.Time,
		UID:        gang.UID(pg.UID),
		Timeout:    timeout,
		Generation: pg.Generation,
		Placement:  Placement(pg) + fmt.Sprint(podview.Amounts(pg.Spec.MinResources)),
	}
	if t := pg.Spec.ScheduleTimeoutSeconds; t != nil && *t > 0 {
		// The framework lets no pod wait for longer.
		s.Timeout = min(time.Duration(*t)*time.Second, maxTimeout)
	}
	return s, nil
}

// Misstated returns what a pod or a PodGroup says wrongly of backfill, its run time or its work, nil if nothing is
// wrong.
func Misstated(of metav1.Object) *wellknown.BadValue {
	_, backfill := Backfill(of)
	_, run := runview.Declared(of)
	_, work := workview.Declared(of)
	return cmp.Or(backfill, run, work)
}

// Generated reports whether the controller created the PodGroup and no user has edited its spec since.
func Generated(pg *schedulingv1alpha1.PodGroup) bool {
	minimum, marked := pg.Annotations[wellknown.StandInKey]
	return marked && minimum == strconv.Itoa(int(pg.Spec.MinMember)) && len(pg.Spec.MinResources) == 0 &&
		pg.Spec.ScheduleTimeoutSeconds == nil
}

// Placement is equal for PodGroups, which may be nil, whose annotations say the same of where members may be. They
// count in PodGroups that stand in for labels, too, and a change of them is no edit of the spec.
func Placement(pg *schedulingv1alpha1.PodGroup) string {
	said := map[string]string{}
	pg = cmp.Or(pg, &schedulingv1alpha1.PodGroup{})
	for _, key := range []string{wellknown.TopologyRequiredKey, wellknown.TopologyPreferredKey,
		wellknown.BackfillKey, wellknown.SegmentSizeKey, wellknown.SegmentTopologyKey, wellknown.GroupsKey,
		wellknown.GroupLabelKey} {
		// An empty value is not allowed where none is.
		if value, found := pg.Annotations[key]; found {
			said[key] = value
		}
	}
	return fmt.Sprintf("%q", said)
}

// Member reads a pod as a member of its gang. Ours says whether the process schedules it.
func Member(pod *v1.Pod, of Membership, pg *schedulingv1alpha1.PodGroup, ours bool) gang.Member {
	m := gang.Member{
		Ref:      RefOf(pod),
		Priority: corev1helpers.PodPriority(pod),
		Created:  pod.CreationTimestamp.Time,
		Node:     pod.Spec.NodeName,
		Ours:     ours,
		Role:     Role(pod, pg),
		Minimum:  of.Minimum,
	}
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		m.State = gang.Succeeded
	case pod.Status.Phase == v1.PodFailed:
		m.State = gang.Failed
	case pod.DeletionTimestamp != nil:
		m.State = gang.Terminating
	case pod.Spec.NodeName != "":
		m.State = gang.Bound
		m.Running = pod.Status.Phase == v1.PodRunning
	case len(pod.Spec.SchedulingGates) > 0:
		m.State = gang.Gated
	default:
		m.State = gang.Pending
		m.Class = placementClass(pod)
	}
	return m
}

// placementClass is equal for pods that filters and scores treat alike. Labels by which controllers number pods are
// left out; a pod for which they matter after all finds that out when it reserves its node.
func placementClass(pod *v1.Pod) string {
	c := class{make([]byte, 0, 512)} // most are shorter
	c.text(pod.Spec.SchedulerName)
	c.number(int64(corev1helpers.PodPriority(pod)))
	requests := podview.Requests(pod)
	c.number(int64(len(requests)))
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		c.text(string(name))
		c.number(podview.Amount(name, requests[name]))
	}
	c.labels(pod.Spec.NodeSelector)
	c.labels(withoutOrdinals(pod.Labels))
	c.labels(withoutOrdinals(pod.Annotations))
	c.number(int64(len(pod.Spec.Tolerations)))
	for _, t := range pod.Spec.Tolerations {
		c.text(t.Key)
		c.text(string(t.Operator))
		c.text(t.Value)
		c.text(string(t.Effect))
		c.number(ptr.Deref(t.TolerationSeconds, -1))
	}
	rare := struct {
		Affinity *v1.Affinity
		Spread   []v1.TopologySpreadConstraint
		Volumes  []v1.Volume
		Ports    []v1.ContainerPort
		Claims   []v1.PodResourceClaim
		OS       *v1.PodOS
	}{Affinity: pod.Spec.Affinity, Spread: pod.Spec.TopologySpreadConstraints, Claims: pod.Spec.ResourceClaims,
		OS: pod.Spec.OS}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.ISCSI != nil || v.RBD != nil ||
			v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.AzureDisk != nil {
			rare.Volumes = append(rare.Volumes, v)
		}
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				rare.Ports = append(rare.Ports, p)
			}
		}
	}
	if rare.Affinity != nil || len(rare.Spread)+len(rare.Volumes)+len(rare.Ports)+len(rare.Claims) > 0 || rare.OS != nil {
		// Marshalling these types cannot fail; maps are written in the order of their keys.
		data, _ := json.Marshal(rare)
		c.text(string(data))
	}
	h := fnv.New128a()
	_, _ = h.Write(c.written)
	return string(h.Sum(nil))
}

// class is written field by field, each with its length, so that no two classes are written alike. Every pod that comes
// or changes is written, which is why only what is rare goes through a general encoder.
type class struct{ written []byte }

func (c *class) number(n int64) { c.written = binary.AppendVarint(c.written, n) }

func (c *class) text(s string) {
	c.number(int64(len(s)))
	c.written = append(c.written, s...)
}

func (c *class) labels(m map[string]string) {
	c.number(int64(len(m)))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		c.text(key)
		c.text(m[key])
	}
}
