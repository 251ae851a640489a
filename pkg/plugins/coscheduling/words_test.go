package coscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

func TestWordsOfOtherPluginsAreRemembered(t *testing.T) {
	t.Parallel()
	id := gang.ID{Namespace: "n", Name: "a"}
	steps := []struct {
		name, message string
		status        v1.ConditionStatus
		news          bool
		want          string
	}{
		{name: "nothing said", message: ""},
		{name: "the gang's own reason", message: "0/4 nodes are available: gang n/a needs 4 pods, fits 3."},
		{name: "another plugin's", message: "0/1 nodes are available: 1 the ration is used up.", news: true, want: "the ration is used up"},
		{name: "the same again", message: "0/1 nodes are available: 1 the ration is used up.", want: "the ration is used up"},
		{name: "the gang's reason does not replace it", message: "gang n/a needs 4 pods, fits 3", want: "the ration is used up"},
		{name: "nor does that a pod was scheduled", message: "0/1 nodes are available: 1 other.", status: v1.ConditionTrue, want: "the ration is used up"},
		{name: "other words do", message: "0/1 nodes are available: 1 node(s) had no seat.", news: true, want: "node(s) had no seat"},
	}
	var w pluginWords
	for _, s := range steps {
		if s.status == "" {
			s.status = v1.ConditionFalse
		}
		pod := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: s.status, Message: s.message}}}}
		if news := w.note(id, pod); news != s.news {
			t.Errorf("%s: news is %v", s.name, news)
		}
		if got := w.about(id); got != s.want {
			t.Errorf("%s: got %q, want %q", s.name, got, s.want)
		}
	}
	w.forget(id)
	if got := w.about(id); got != "" {
		t.Errorf("after it was forgotten: %q", got)
	}
}
