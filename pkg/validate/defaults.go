package validate

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/simulation"
	"berth.dev/berth/pkg/simulation/memapi"
)

// WithDefaults returns a configuration, as runtime.ContentTypeYAML or ContentTypeJSON, with what the scheduler makes of
// it: all plugins of each profile and all args with their defaults.
func WithDefaults(c *schedulerconfig.Configuration, mediaType string) ([]byte, error) {
	silent, _ := c.WithoutSignals()
	silent, _ = silent.WithoutExtenderFiles()
	full := c.Component.DeepCopy()
	err := simulation.Settled(time.Unix(1_800_000_000, 0), func(settle func()) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		sched, err := simulation.NewScheduler(ctx, memapi.New(), silent, 1)
		if err != nil {
			return err
		}
		defer sched.Stop()
		settle()
		registry, err := allPlugins()
		if err != nil {
			return err
		}
		for i := range full.Profiles {
			given := full.Profiles[i]
			capture := func(p schedulerapi.KubeSchedulerProfile) { full.Profiles[i] = p }
			if err := buildAgain(ctx, registry, sched.Profiles[given.SchedulerName], &silent.Component.Profiles[i],
				capture); err != nil {
				return err
			}
			giveBack(full.Profiles[i].PluginConfig, given.PluginConfig)
		}
		return nil
	})
	if err != nil {
		return nil, c.Invalid(err)
	}
	info, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !found {
		return nil, fmt.Errorf("there is no encoder of %s", mediaType)
	}
	serializer := info.Serializer
	if info.PrettySerializer != nil {
		serializer = info.PrettySerializer
	}
	var out bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(serializer, configv1.SchemeGroupVersion).Encode(full, &out); err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	return out.Bytes(), nil
}

// giveBack puts the args that were given in the place of those with which the profile was built, which read no live
// metrics.
func giveBack(built, given []schedulerapi.PluginConfig) {
	for i := range built {
		for j := range given {
			if built[i].Name == given[j].Name {
				built[i].Args = given[j].Args
			}
		}
	}
}
