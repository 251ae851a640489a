package history

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// giveSteps has some PodGroups of some histories grow by steps, those with roles in a ratio, from a smaller minimum and
// with more members. It draws apart, so that the rest of a history is the same as without.
func (h *History) giveSteps(random *rand.Rand) {
	if random.IntN(3) > 0 {
		return
	}
	growing := map[string]bool{}
	for i := range h.Steps {
		gang := h.Steps[i].Gang
		if gang == nil || gang.Job || random.IntN(3) == 0 {
			continue
		}
		growing[gang.Name] = true
		gang.MinMember = (gang.MinMember + 1) / 2
		switch gang.MinByRole {
		case "":
			gang.GrowBy = []string{"2", "3", "double"}[random.IntN(3)]
		default:
			gang.MinMember = max(gang.MinMember, 2)
			gang.MinByRole = fmt.Sprintf("leader=1,worker=%d", gang.MinMember-1)
			gang.GrowBy = []string{"2", "leader=1,worker=1", "leader=1,worker=2"}[random.IntN(3)]
		}
	}
	var steps []Step
	for _, s := range h.Steps {
		steps = append(steps, s)
		if s.Pod == nil || !growing[s.Pod.Gang] || random.IntN(2) == 0 {
			continue
		}
		more := *s.Pod
		more.Name += "x"
		steps = append(steps, Step{Do: CreatePod, Pod: &more,
			After: metav1.Duration{Duration: []time.Duration{time.Millisecond, 30 * time.Second}[random.IntN(2)]}})
	}
	h.Steps = steps
}
