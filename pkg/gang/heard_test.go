package gang

import (
	"testing"
	"time"
)

func TestWordsOfOtherPluginsAreRemembered(t *testing.T) {
	t.Parallel()
	noon := t0
	steps := []struct {
		name, words string
		at          time.Time
		news        bool
		want        string
	}{
		{"the first words are news", "the ration is used up", noon, true, "the ration is used up"},
		{"the same again is none", "the ration is used up", noon.Add(time.Second), false, "the ration is used up"},
		{"other words are", "no seat", noon.Add(2 * time.Second), true, "no seat"},
		{"at the same instant those that come first by the alphabet count", "full", noon.Add(2 * time.Second), true, "full"},
		{"and others do not", "no seat", noon.Add(2 * time.Second), false, "full"},
		{"later ones do", "no seat", noon.Add(3 * time.Second), true, "no seat"},
	}
	l := gangOf(1, 1)
	if got := l.LastRejection(g1); got != "" {
		t.Errorf("before anything was said: %q", got)
	}
	for _, s := range steps {
		if news := l.RecordRejection(g1, s.words, s.at); news != s.news {
			t.Errorf("%s: news is %v", s.name, news)
		}
		if got := l.LastRejection(g1); got != s.want {
			t.Errorf("%s: got %q, want %q", s.name, got, s.want)
		}
	}
	l.Undefine(g1, Object, noon)
	l.Forget(uid(0), noon)
	if got := l.LastRejection(g1); got != "" {
		t.Errorf("after it was forgotten: %q", got)
	}
}
