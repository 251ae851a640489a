package hold

import (
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/process"
)

// testMembers knows gangs by the labels of pods.
func testMembers() *members.Directory {
	return &members.Directory{Policy: &read.OwnerPolicy{}, Groups: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

// testIndex is an index without resources that device classes hand out.
func testIndex() *capacity.Index {
	return capacity.New(&process.Profiles{})
}
