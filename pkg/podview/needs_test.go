package podview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestImagesOfAPodHaveTheNamesThatNodesListThemBy(t *testing.T) {
	t.Parallel()
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Image: "registry.example:5000/init"}},
		Containers:     []v1.Container{{Image: "work:1"}, {Image: "registry.example:5000/side:2"}},
		Volumes: []v1.Volume{
			{Name: "none"}, {Name: "model", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "model"}}},
		},
	}}
	want := []string{"registry.example:5000/init:latest", "work:1", "registry.example:5000/side:2", "model:latest"}
	if diff := cmp.Diff(want, PodImages(pod)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestTheStepOfAnAmountIsAboutAThousandthOfIt(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{0, 1, 1023, 1024, 1 << 20, 540_556_030_000, 1<<62 + 1} {
		step := CoarseStep(total)
		if step < 1 || step > 1 && (total/step < 512 || total/step > 1024) {
			t.Errorf("step of %d is %d", total, step)
		}
	}
}
