package hamilock

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gpu/gpuview"
)

func lockedNode(lock string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gpuview.HAMiLockKey: lock}}}
}

func TestReadingALock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		value string
		want  lock
	}{
		{lockOf(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}, at), lock{at, "default", "p"}},
		{"2026-08-01T12:00:00Z", lock{since: at}},
		{"", lock{}},
		{"yesterday,default,p", lock{}},
		{"2026-08-01T12:00:00Z,default", lock{}},
		{"2026-08-01T12:00:00Z,default,p,q", lock{}},
		{"2026-08-01T12:00:00Z,,p", lock{}},
	} {
		got, ok := readLock(lockedNode(tc.value))
		if !ok || !got.since.Equal(tc.want.since) || got.namespace != tc.want.namespace || got.pod != tc.want.pod {
			t.Errorf("%q: %+v, %v, want %+v", tc.value, got, ok, tc.want)
		}
	}
	if _, ok := readLock(&v1.Node{}); ok {
		t.Error("a node without the annotation is locked")
	}
	for after, want := range map[time.Duration]time.Duration{
		time.Minute:      4 * time.Minute,
		10 * time.Minute: -5 * time.Minute,
		-time.Minute:     6 * time.Minute, // the clock of who took it is a little ahead
		-time.Hour:       0,
	} {
		if left := (lock{since: at}).remaining(at.Add(after)); left != want {
			t.Errorf("%s after it was taken, %s are left, want %s", after, left, want)
		}
	}
}

func FuzzLock(f *testing.F) {
	f.Add("2026-08-01T12:00:00Z,default,p")
	f.Add(",,")
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := readLock(lockedNode(value))
		if !ok {
			t.Error("the node is not locked")
		}
		if (got.pod == "") != (got.namespace == "") || strings.ContainsRune(got.pod, ',') {
			t.Errorf("%q: %+v", value, got)
		}
		if got.pod != "" && got.since.IsZero() && !strings.HasPrefix(value, "0001-01-01") {
			t.Errorf("%q names a pod and no time", value)
		}
	})
}
