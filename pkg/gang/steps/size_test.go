package steps

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSizesThatUsersWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"double":                      Double,
		"8":                           "8",
		"+008":                        "8",
		"prefill=1, decode=4":         "prefill=1,decode=4",
		"replica/decode=4,router=001": "replica/decode=4,router=1",
		"1":                           "",
		"Double":                      "",
		"100001":                      "",
		"decode=0":                    "",
		"decode=4,decode=1":           "",
		"decode=4,":                   "",
		"=4":                          "",
		"a/b/c=1":                     "",
		"decode=double":               "",
	} {
		if got, ok := Parse(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q is read as %q (%t), want %q", text, got, ok, want)
		}
	}
}

func TestSizesThatDisagreeHaveAnOrder(t *testing.T) {
	t.Parallel()
	sizes := []Size{"10", "b=1", Double, "a=9", "2", ""}
	slices.SortFunc(sizes, Size.Compare)
	if diff := cmp.Diff([]Size{"", Double, "2", "10", "a=9", "b=1"}, sizes); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"double", "Double", "2", "1", "0", "-8", "+8", "008", "100000", "100001", "8.0", "",
		" 8", "1e3", "a=1", "a=1,b=2", "a/b=3", "a=1,a=1", "a=0", "=1", "a=", "a b=1", "a=1,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := Parse(text)
		if !ok {
			return
		}
		if n, _ := number(string(s)); s != Double && !s.Named() && (n < 2 || n > Largest) {
			t.Fatalf("%q is read as %d", text, n)
		}
		if again, ok := Parse(string(s)); !ok || again != s {
			t.Fatalf("%q is read as %s, which is read as %s", text, s, again)
		}
	})
}
