package podview

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	tests := map[string]struct {
		value string
		want  []License
		bad   bool
	}{
		"one license":                         {value: "matlab", want: []License{{"matlab", 1}}},
		"an amount":                           {value: "matlab=2", want: []License{{"matlab", 2}}},
		"several in any order, with spaces":   {value: " matlab = 2 , ansys", want: []License{{"ansys", 1}, {"matlab", 2}}},
		"the largest amount":                  {value: "matlab=1000000", want: []License{{"matlab", 1_000_000}}},
		"as many as are allowed":              {value: names(16), want: nil},
		"an empty value":                      {value: "", bad: true},
		"an empty name":                       {value: "matlab,,ansys", bad: true},
		"a comma at the end":                  {value: "matlab,", bad: true},
		"an amount of zero":                   {value: "matlab=0", bad: true},
		"a negative amount":                   {value: "matlab=-1", bad: true},
		"an amount that is no number":         {value: "matlab=two", bad: true},
		"no amount after the equals sign":     {value: "matlab=", bad: true},
		"a fraction":                          {value: "matlab=1.5", bad: true},
		"an amount that is too large":         {value: "matlab=1000001", bad: true},
		"an amount beyond 64 bits":            {value: "matlab=99999999999999999999", bad: true},
		"a license twice":                     {value: "matlab,matlab=2", bad: true},
		"a name with capitals":                {value: "MATLAB", bad: true},
		"a name that is too long":             {value: strings.Repeat("a", 64), bad: true},
		"more licenses than are allowed":      {value: names(17), bad: true},
		"a name that ends with a punctuation": {value: "matlab-", bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := PodLicenses(annotatedPod(wellknown.LicensesKey, test.value))
			if (bad != nil) != test.bad {
				t.Fatalf("bad value is %v, want one: %t", bad, test.bad)
			}
			if bad != nil && !strings.Contains(bad.Error(), wellknown.LicensesKey) {
				t.Errorf("%q does not name the key", bad)
			}
			if test.want != nil || test.bad {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("licenses (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestDatasetsOfAPod(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		want  []string
		bad   bool
	}{
		"one dataset":                    {value: "imagenet", want: []string{"imagenet"}},
		"several in any order":           {value: "laion, imagenet.v2", want: []string{"imagenet.v2", "laion"}},
		"an empty value":                 {value: "", bad: true},
		"a dataset twice":                {value: "a,a", bad: true},
		"an amount, which means nothing": {value: "a=2", bad: true},
		"more than are allowed":          {value: names(17), bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := PodDatasets(annotatedPod(wellknown.DatasetsKey, test.value))
			if (bad != nil) != test.bad {
				t.Fatalf("bad value is %v, want one: %t", bad, test.bad)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("datasets (-want +got):\n%s", diff)
			}
		})
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
		if bad != nil || !cmp.Equal(licenses, again) {
			t.Fatalf("%q is read as %v, and that as %v (%v)", value, licenses, again, bad)
		}
		if _, bad := PodDatasets(annotatedPod(wellknown.DatasetsKey, value)); bad == nil && strings.Contains(value, "=") {
			t.Fatalf("%q is read as datasets", value)
		}
	})
}
