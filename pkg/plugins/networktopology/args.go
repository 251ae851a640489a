package networktopology

import (
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/topology"
)

// settings are the args as domain values.
type settings struct {
	levels podview.NetworkLevels
	// steps name what two nodes can share, in the order of Distances.
	steps []string
	// distances are nanoseconds for 1 MiB.
	distances topology.Distances
	traffic   traffic
	appLabel  string
}

// kibPerGiB converts the unit of the args into that of traffic, whose shares must not round to 0.
const kibPerGiB = 1 << 20

// readArgs checks and converts the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*settings, error) {
	args, err := config.Checked[*config.NetworkTopologyArgs](obj, profile, Name)
	if err != nil {
		return nil, err
	}
	s := &settings{
		appLabel: *args.AppLabel,
		traffic:  traffic{ofGang: *args.GangGiBPerHour * kibPerGiB, ofApp: *args.AppGiBPerHour * kibPerGiB},
	}
	step := func(name string, microseconds int64) {
		s.steps, s.distances = append(s.steps, name), append(s.distances, microseconds*1000)
	}
	step("node", *args.SameNodeMicroseconds)
	for _, l := range args.Levels {
		s.levels = append(s.levels, l.Labels)
		step(l.Name, l.Microseconds)
	}
	step("apart", args.Apart.Microseconds)
	return s, nil
}
