package plugins_test

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// attackPods is how many pods with large annotations come and go.
var attackPods = flag.Int("attack-pods", 160,
	"pods with 240 KB of text each that are created and deleted; the claim is made for 10000")

const (
	// largeValue is close to the 256 KiB that the API server takes in all annotations of a pod.
	largeValue = 240_000
	// wavePods are created at a time; those of the wave before last are deleted then.
	wavePods = 10
)

// largePod is the number-th pod, with a large value where no pod before had one: in each annotation that means
// anything, in values that can be read but for the spaces around them, and in the reference to its controller.
func largePod(number int, keys []string) *v1.Pod {
	requests := strs{"nvidia.com/gpu": "1", "cpu": fmt.Sprintf("%dm", 100+number)} // a class of its own
	pod := gpuPod(fmt.Sprintf("large-%d", number), requests, nil)
	pod.Spec.SchedulerName = []string{"gpu-aware-scheduler", "cost-optimized-scheduler", "berth-scheduler"}[number%3]
	spaces := strings.Repeat(" ", largeValue/2-40)
	switch form := number % 4; form {
	case 0:
		pod.Annotations = strs{wellknown.GPUModelsKey: largeText(number)} // what was remembered by the pod before
	case 1:
		pod.Annotations = strs{keys[number/4%len(keys)]: largeText(number)}
	case 2:
		pod.Annotations = strs{wellknown.GPUModelsKey: "Tesla-T4" + spaces, wellknown.DatasetsKey: fmt.Sprint("data-",
			number) + spaces}
	default:
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Job", Name: largeText(number),
			UID: types.UID(fmt.Sprint("job-", number)), Controller: ptr.To(true)}}
	}
	return pod
}

// testMemory has a tenant create and delete pods with large values.
func testMemory(t *testing.T, b *box.Box) {
	b = b.Part(t, "large", attackedNode)
	keys := wellknown.Own()
	for key := range stale {
		keys = append(keys, key)
	}
	keys = append(keys, "alibabacloud.com/gpu-milli", "gpu-fraction", "example.com/anything")
	for at, key := range keys {
		if key == wellknown.SchedulerKey {
			keys[at] = "nvidia.com/use-gputype"
		}
	}
	made, deleted := 0, 0
	waves := func(n int) {
		t.Helper()
		for end := made + n; made < end; {
			var wave errgroup.Group
			for range min(wavePods, end-made) {
				number, gone := made, made-2*wavePods >= deleted
				wave.Go(func() error {
					pod := b.Own(largePod(number, keys))
					if _, err := b.Client.CoreV1().Pods(b.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil ||
						!gone {
						return err
					}
					return removeLarge(t.Context(), b, number-2*wavePods)
				})
				made++
			}
			if err := wave.Wait(); err != nil {
				t.Fatal(err)
			}
			deleted = max(deleted, made-2*wavePods)
			if made%1000 == 0 {
				t.Logf("the heap is %.1f MiB after %d pods", mib(heapNow(t, b)), made)
			}
		}
	}
	finish := func(name string) {
		t.Helper()
		for ; deleted < made; deleted++ {
			if err := removeLarge(t.Context(), b, deleted); err != nil {
				t.Fatal(err)
			}
		}
		// The queue has been through what came before.
		b.Create(t, gpuPod(name, nil, nil))
		b.Bound(t, name, "")
	}
	// Buffers and caches have their size after the first.
	waves(2 * wavePods)
	finish("after-some")
	before := heapNow(t, b)
	waves(*attackPods)
	finish("after-all")
	// A quarter of the pods would show, and what is remembered of the first pods of a kind, whatever their number,
	// would not.
	mayGrow := min(20<<20, int64(*attackPods)*largeValue/5)
	// Informers may still hear of the last deletions.
	var after int64
	b.Await(t, "the heap to be free of what is gone", func(ctx context.Context) (bool, error) {
		var err error
		after, err = heap(ctx, b)
		return err == nil && after-before < mayGrow, nil
	})
	t.Logf("%d pods with %d bytes of text: the heap was %.1f MiB before and %.1f MiB after", *attackPods, largeValue,
		mib(before), mib(after))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// largeText is a list of names that no other pod has.
func largeText(number int) string {
	var b strings.Builder
	for i := 0; b.Len() < largeValue-40; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "model-%d-%d", number, i)
	}
	return b.String()
}

// removeLarge deletes the number-th pod.
func removeLarge(ctx context.Context, b *box.Box, number int) error {
	return b.Client.CoreV1().Pods(b.Namespace).Delete(ctx, fmt.Sprintf("large-%d", number),
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap is how much of the scheduler's heap is in use after a garbage collection. It fails while the scheduler is being
// started again.
func heap(ctx context.Context, b *box.Box) (int64, error) {
	page, err := b.SchedulerPage(ctx, "/debug/pprof/heap", strs{"gc": "1", "debug": "1"})
	if err != nil {
		return 0, err
	}
	found := heapAlloc.FindSubmatch(page)
	if found == nil {
		return 0, fmt.Errorf("the scheduler's profile has no HeapAlloc: %.200s", page)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

func heapNow(t *testing.T, b *box.Box) int64 {
	t.Helper()
	bytes, err := heap(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
