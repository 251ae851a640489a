package plural

import "testing"

func TestANounFollowsItsNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{-1: "-1 nodes", 0: "0 nodes", 1: "1 node", 2: "2 nodes", 1000: "1000 nodes"} {
		if got := Of(n, "node"); got != want {
			t.Errorf("Of(%d) is %q, want %q", n, got, want)
		}
	}
	if got := Choose(int64(1), "is", "are") + Choose(2, "is", "are"); got != "isare" {
		t.Errorf("got the verbs %q for 1 and 2, want is and are", got)
	}
}
