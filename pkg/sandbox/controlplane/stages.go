package controlplane

import (
	"embed"
	"fmt"
	"io/fs"

	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var ownStages embed.FS

// allStages returns the stages of nodes and pods in a sandbox, where no container runs: pods run as soon as they are
// bound, end as their annotations say, and disappear when they are deleted; nodes renew their leases.
func allStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	texts := []string{fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease, podfast.DefaultPodReady}
	names, err := fs.Glob(ownStages, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the stages: %w", err)
	}
	for _, name := range names {
		text, err := ownStages.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading a stage: %w", err)
		}
		texts = append(texts, string(text))
	}
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range texts {
		var written v1alpha1.Stage
		if err := yaml.UnmarshalStrict([]byte(text), &written); err != nil {
			return nil, fmt.Errorf("decoding a stage: %w", err)
		}
		stage, err := internalversion.ConvertToInternalStage(&written)
		if err != nil {
			return nil, fmt.Errorf("converting a stage: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}
