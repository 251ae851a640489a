package release_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

func testStandIns(t *testing.T, w *guarded) {
	ctx := t.Context()
	ours, theirs := w.groupsAs(t, "system:serviceaccount:kube-system:berth-scheduler"), w.groupsAs(t, team)
	// The mark is not that of the minimum, so that the scheduler of the control plane takes the PodGroup for an edited
	// one.
	made := map[string]string{wellknown.StandInKey: "7"}
	if _, err := ours.Create(ctx, groupWith("stand-in", made), metav1.CreateOptions{}); err != nil {
		t.Fatalf("the scheduler makes a stand-in: %v", err)
	}
	if _, err := theirs.Create(ctx, groupWith("own", nil), metav1.CreateOptions{}); err != nil {
		t.Fatalf("the team makes a PodGroup: %v", err)
	}
	const (
		about   = "annotation berth.dev/stand-in marks a PodGroup that the scheduler made: only the scheduler "
		written = about + "writes it"
		removed = about + "removes it; to make the PodGroup yours, edit its spec"
	)
	_, err := theirs.Create(ctx, groupWith("forged", made), dryRun)
	assert.Equal(t, "creating one", written, denial(err))
	annotation := func(value string) string {
		return `{"metadata":{"annotations":{"` + wellknown.StandInKey + `":` + value + `}}}`
	}
	for _, test := range []struct{ name, group, patch, want string }{
		{"marking a PodGroup of one's own", "own", annotation(`"2"`), written},
		{"changing the mark", "stand-in", annotation(`"3"`), written},
		{"changing the mark with the spec", "stand-in", `{"metadata":{"annotations":{"berth.dev/stand-in":"3"}},"spec":{"minMember":3}}`, written},
		{"removing the mark", "stand-in", annotation("null"), removed},
		{"emptying the mark", "stand-in", annotation(`""`), removed},
		{"another annotation", "stand-in", `{"metadata":{"annotations":{"example.com/note":"x"}}}`, ""},
		{"editing the spec", "stand-in", `{"spec":{"minMember":3}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := theirs.Patch(ctx, test.group, types.MergePatchType, []byte(test.patch),
				metav1.PatchOptions{DryRun: dryRun.DryRun})
			assert.Equal(t, "", test.want, denial(err))
		})
	}
	if _, err := ours.Patch(ctx, "stand-in", types.MergePatchType, []byte(annotation(`"5"`)), metav1.PatchOptions{}); err != nil {
		t.Errorf("the scheduler corrects its stand-in: %v", err)
	}
	if err := theirs.Delete(ctx, "stand-in", metav1.DeleteOptions{}); err != nil {
		t.Errorf("the team deletes a stand-in: %v", err)
	}
}
