package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins"
	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/pkg/plugins/gpuaware"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/plugins/placementpolicy"
	"berth.dev/berth/pkg/plugins/slaaware"
	"berth.dev/berth/pkg/yamldoc"
)

// defaultQPS is client-go's default, with which a scheduler binds about 16 pods a second.
const (
	defaultQPS = 50
	stockLease = "kube-scheduler"
)

// audible divides the weight of packing plugins: a spreading score with more than that part works against them.
const audible = 10

// lint warns of combinations that defeat each other.
func (d *document) lint(c *schedulerconfig.KubeSchedulerConfiguration, profiles []Profile) {
	if c.ClientConnection.QPS <= defaultQPS && c.ClientConnection.QPS >= 0 {
		d.find(Warning, "qps", "clientConnection.qps", fmt.Sprintf(
			"clientConnection.qps is %g: a pod takes 3 requests, so at most %.0f pods a second are bound, whatever the "+
				"scheduler's speed; 2000 leaves the limit to the API server", c.ClientConnection.QPS, c.ClientConnection.QPS/3))
	}
	stock := slices.ContainsFunc(profiles, func(p Profile) bool { return p.Name == "default-scheduler" })
	if c.LeaderElection.LeaderElect && c.LeaderElection.ResourceName == stockLease && !stock {
		d.find(Warning, "lease", "leaderElection.resourceName",
			"leaderElection.resourceName is kube-scheduler, the lease of the cluster's own scheduler: the two would take "+
				"turns; give this one a name of its own")
	}
	if len(c.Extenders) > 0 {
		d.find(Warning, "batching", "extenders",
			"an extender switches the batching of identical pods and best-first candidates off in every profile")
	}
	ruled := slices.ContainsFunc(profiles, func(p Profile) bool { return holdsPolicies(&p) })
	for i := range profiles {
		path := fmt.Sprintf("profiles[%d]", i)
		of := *d
		of.profile = profiles[i].Name
		l := profileLint{document: &of, path: path, profile: &profiles[i]}
		l.unreadArgs()
		l.weights()
		l.packing()
		l.batching(len(c.Extenders) > 0)
		l.gangs()
		l.network()
		l.gpuNames()
		if unassigned := plugins.UnassignedDevices(l.profile.plugins); unassigned != "" {
			l.warn("gpu", "plugins", unassigned)
		}
		l.objectives()
		l.classes()
		l.sample(c.PercentageOfNodesToScore)
		if ruled && !holdsPolicies(&profiles[i]) {
			l.warn("policies", "plugins",
				"PlacementPolicy is not enabled as in other profiles: pods that choose this one are held to no placement policy, "+
					"and their licenses are not reserved")
		}
	}
}

// holdsPolicies reports whether the profile holds pods to placement policies and reserves what they use.
func holdsPolicies(p *Profile) bool {
	return enables(p.plugins.PreFilter, placementpolicy.Name) && enables(p.plugins.Filter, placementpolicy.Name) &&
		enables(p.plugins.Reserve, placementpolicy.Name)
}

type profileLint struct {
	*document
	path    string
	profile *Profile
}

func (l *profileLint) warn(rule, path, message string) {
	l.findAt(Warning, rule, l.line(l.path+"."+path), message)
}

// args returns the args of a plugin and the path to them.
func args[T any](l *profileLint, plugin string) (*T, string) {
	return argsOf[T](l.profile), "pluginConfig[" + plugin + "].args"
}

// unreadArgs warns of args of plugins that the profile does not enable.
func (l *profileLint) unreadArgs() {
	list, _ := l.at(l.path + ".pluginConfig")
	for _, item := range yamldoc.Items(list) {
		name := yamldoc.Child(item, "name")
		if known, err := allPlugins(); err != nil || known[yamldoc.Text(name)] == nil ||
			slices.Contains(l.profile.plugins.Names(), name.Value) {
			continue
		}
		l.findAt(Warning, "plugin", name.Line, "the profile does not enable "+name.Value+": nothing reads its args")
	}
}

// packing warns of stock scores that spread while Berth's pack.
func (l *profileLint) packing() {
	packs := l.profile.weight(gpuaware.Name) + l.profile.weight(costoptimized.Name)
	if gpu, _ := args[config.GPUAwareArgs](l, gpuaware.Name); gpu != nil && gpu.Strategy != nil &&
		*gpu.Strategy == config.GPUStrategySpread {
		return
	}
	for _, name := range []string{gpuaware.Name, costoptimized.Name, networktopology.Name, placementpolicy.Name,
		slaaware.Name} {
		if l.profile.weight(name) == 1 {
			l.warn("low-weight", "plugins", name+" has weight 1: the stock scores add up to 12 and outvote it; use 20")
		}
	}
	fit, path := args[schedulerconfig.NodeResourcesFitArgs](l, names.NodeResourcesFit)
	weight := l.profile.weight(names.NodeResourcesFit)
	if fit == nil || fit.ScoringStrategy == nil || fit.ScoringStrategy.Type != schedulerconfig.LeastAllocated ||
		weight == 0 {
		return
	}
	if gangs := enables(l.profile.plugins.QueueSort, coscheduling.Name); packs == 0 && !gangs || weight*audible <= packs {
		return
	}
	l.warn("spreading", path+".scoringStrategy.type", fmt.Sprintf(
		"NodeResourcesFit (weight %d) prefers the emptiest node (LeastAllocated), which works against packing; "+
			"MostAllocated works with it", weight))
}

// gpuNames warns of plugins that count and price different GPUs.
func (l *profileLint) gpuNames() {
	gpu, _ := args[config.GPUAwareArgs](l, gpuaware.Name)
	cost, path := args[config.CostOptimizedArgs](l, costoptimized.Name)
	if gpu == nil || cost == nil || l.profile.weight(costoptimized.Name) == 0 ||
		reflect.DeepEqual(gpu.GPUNames, cost.GPUNames) {
		return // a profile that does not score by prices asks for no GPU of a node
	}
	l.warn("gpu", path,
		"CostOptimized prices other GPUs than GPUAware counts: resources, sharedResources, slicePrefixes, deviceDrivers "+
			"and labels should be the same in both")
}

// objectives warns of SLAAware without measured values.
func (l *profileLint) objectives() {
	if a, path := args[config.SLAAwareArgs](l, slaaware.Name); a != nil && a.Signals == nil &&
		l.profile.weight(slaaware.Name) > 0 {
		l.warn("no-figures", path,
			"SLAAware scores no node without signals: give it a query for the latency or the throughput of nodes")
	}
}

// classes warns of service classes without an effect.
func (l *profileLint) classes() {
	a, path := args[config.CoschedulingArgs](l, coscheduling.Name)
	if a == nil || a.SLA == nil {
		return
	}
	for i, c := range a.SLA.Classes {
		orders := c.DeadlineSeconds != nil || c.EarliestOwnDeadlineSeconds != nil || c.AgeFromPriority != nil
		if !orders && c.TimeoutSeconds == nil {
			l.warn("no-effect", fmt.Sprintf("%s.sla.classes[%d]", path, i),
				"class "+c.Name+
					" has neither deadlineSeconds nor timeoutSeconds nor ageFromPriority: its pods are ordered like those without "+
					"a class")
		}
	}
}

// batching warns of plugins that prevent the batching of identical pods.
func (l *profileLint) batching(extender bool) {
	if len(l.profile.Unsigned) > 0 {
		l.warn("batching", "plugins", "the batching of identical pods is off: no SignPod in "+
			strings.Join(l.profile.Unsigned, ", "))
	}
	spread, path := args[schedulerconfig.PodTopologySpreadArgs](l, names.PodTopologySpread)
	scores := enables(l.profile.plugins.PreScore, names.PodTopologySpread) ||
		enables(l.profile.plugins.Filter, names.PodTopologySpread)
	if scores && spread != nil && spread.DefaultingType == schedulerconfig.SystemDefaulting && !extender {
		l.warn("batching", path+".defaultingType",
			"PodTopologySpread's built-in default constraints switch the batching of identical pods off; defaultingType: List "+
				"without constraints brings it back")
	}
}

// gangs checks the position of Coscheduling in PostFilter.
func (l *profileLint) gangs() {
	stock := false
	for _, p := range l.profile.plugins.PostFilter.Enabled {
		stock = stock || p.Name == names.DefaultPreemption
		if p.Name != coscheduling.Name || !stock {
			continue
		}
		l.warn("gang-preemption", "plugins.postFilter",
			"Coscheduling comes after DefaultPreemption in postFilter: pods would be evicted one at a time for a gang that "+
				"cannot start even then; enable it in postFilter itself, which puts it first")
	}
}

// network warns of NetworkTopology without the extension points that it needs.
func (l *profileLint) network() {
	if l.profile.weight(networktopology.Name) == 0 {
		return
	}
	if !enables(l.profile.plugins.PreFilter, networktopology.Name) ||
		!enables(l.profile.plugins.PreScore, networktopology.Name) {
		l.warn("network", "plugins",
			"NetworkTopology scores, but is not enabled in preFilter and preScore, where it finds out what a pod talks to: it "+
				"has no effect; enable it in multiPoint")
	}
	if !enables(l.profile.plugins.Reserve, networktopology.Name) {
		l.warn("network", "plugins",
			"NetworkTopology is not enabled in reserve: pods that are being bound do not count, so that pods which start "+
				"together are not near each other; enable it in multiPoint")
	}
}

// sample warns of scores that see only a sample of the nodes.
func (l *profileLint) sample(global *int32) {
	percentage, path := l.profile.cfg.PercentageOfNodesToScore, "percentageOfNodesToScore"
	if percentage == nil {
		percentage = global
	} else {
		path = l.path + "." + path
	}
	if percentage != nil && *percentage >= 100 {
		return
	}
	what := "is not set, so that above 100 nodes a part of them is enough"
	if percentage != nil && *percentage > 0 {
		what = fmt.Sprintf("is %d", *percentage)
	}
	for _, name := range []string{costoptimized.Name, gpuaware.Name, networktopology.Name, slaaware.Name} {
		if l.profile.weight(name) > 0 {
			l.findAt(Warning, "sampling", l.line(path), fmt.Sprintf(
				"percentageOfNodesToScore %s: %s would miss the best node whenever it is not among those looked at", what, name))
			return
		}
	}
}
