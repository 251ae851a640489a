package podview

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

func annotatedPod(key, value string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
}

// names returns a list of that many names.
func names(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "n" + strconv.Itoa(i)
	}
	return strings.Join(list, ",")
}

func TestLicensesOfAPod(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]License{
		"matlab": {{"matlab", 1}}, " matlab = 2 , ansys": {{"ansys", 1}, {"matlab", 2}},
		"matlab=1000000": {{"matlab", 1_000_000}},
	} {
		if got, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, value)); bad != nil || !slices.Equal(got, want) {
			t.Errorf("%q is read as %v (%v), want %v", value, got, bad, want)
		}
	}
	if got, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, names(16))); bad != nil || len(got) != 16 {
		t.Errorf("of 16 licenses %v are read (%v)", got, bad)
	}
	for _, value := range []string{"", "matlab,,ansys", "matlab,", "matlab=0", "matlab=-1", "matlab=two", "matlab=",
		"matlab=1.5", "matlab=1000001", "matlab=99999999999999999999", "matlab,matlab=2", "MATLAB", strings.Repeat("a", 64),
		names(17), "matlab-"} {
		got, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, value))
		if bad == nil || got != nil || !strings.Contains(bad.Error(), wellknown.LicensesKey) {
			t.Errorf("%q is read as %v (%v)", value, got, bad)
		}
	}
}

func TestDatasetsOfAPod(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"imagenet": {"imagenet"}, "laion, imagenet.v2": {"imagenet.v2", "laion"},
		"": nil, "a,a": nil, "a=2": nil, names(17): nil,
	} {
		got, bad := PodDatasets(annotatedPod(wellknown.DatasetsKey, value))
		if (bad == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q is read as %v (%v), want %v", value, got, bad, want)
		}
	}
}

func TestAPodWithoutTheKeysUsesNothing(t *testing.T) {
	t.Parallel()
	licenses, badLicenses := PodLicenses(&v1.Pod{})
	datasets, badDatasets := PodDatasets(&v1.Pod{})
	if licenses != nil || datasets != nil || badLicenses != nil || badDatasets != nil {
		t.Errorf("it uses %v and %v (%v, %v)", licenses, datasets, badLicenses, badDatasets)
	}
}

// What is read is sorted, unique and positive, and reads the same when it is written again.
func FuzzPodLicenses(f *testing.F) {
	for _, seed := range []string{"matlab", "matlab=2,ansys", "a=0", ",", "=1", "a==1", "a=+1", "a=1\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		licenses, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, value))
		if bad != nil {
			return
		}
		parts := make([]string, len(licenses))
		for i, l := range licenses {
			if l.Amount < 1 || l.Amount > mostLicenses || i > 0 && licenses[i-1].Name >= l.Name {
				t.Fatalf("%q is read as %v", value, licenses)
			}
			parts[i] = l.Name + "=" + strconv.FormatInt(l.Amount, 10)
		}
		again, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, strings.Join(parts, ",")))
		if bad != nil || !slices.Equal(licenses, again) {
			t.Fatalf("%q is read as %v, and that as %v (%v)", value, licenses, again, bad)
		}
		if _, bad := PodDatasets(annotatedPod(wellknown.DatasetsKey, value)); bad == nil && strings.Contains(value, "=") {
			t.Fatalf("%q is read as datasets", value)
		}
	})
}
