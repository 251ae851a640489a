package main

// parts shows what runs where and who tells whom what.
func parts() string {
	c := &canvas{width: 960, height: 500}
	const apiX, apiWidth, right = 390.0, 180.0, 690.0

	c.box(box{x: 0, y: 0, width: 230, height: 78, title: "You, controllers, Kueue", lines: []string{
		"pods with a schedulerName,", "Jobs, PodGroups",
	}})
	c.arrow([2]float64{230, 39}, [2]float64{apiX, 39})
	c.text(310, 31, "s", "middle", "create")

	c.box(box{x: apiX, y: 0, width: apiWidth, height: 300, title: "API server", lines: []string{
		"pods, nodes, prices,", "PodGroups, claims",
	}})

	c.box(box{x: right, y: 0, width: 270, height: 150, own: true, title: "berth-scheduler", lines: []string{
		"kube-scheduler with plugins:", "GPUAware: which GPUs of which node", "CostOptimized: dollars per hour, spot",
		"Coscheduling: gangs, reservations", "NetworkTopology: near each other",
		"SLAAware: deadlines", "PlacementPolicy, IPReservation",
	}})
	c.arrow([2]float64{apiX + apiWidth, 50}, [2]float64{right, 50})
	c.text(630, 42, "s", "middle", "watches")
	c.arrow([2]float64{right, 110}, [2]float64{apiX + apiWidth, 110})
	c.text(630, 102, "s", "middle", "binds pods,")
	c.text(630, 126, "s", "middle", "tells why not")

	c.box(box{x: right, y: 198, width: 270, height: 44, optional: true, title: "Prometheus: prices, use of GPUs"})
	c.arrow([2]float64{right + 135, 198}, [2]float64{right + 135, 150})
	c.box(box{x: right, y: 262, width: 270, height: 60, own: true, optional: true,
		title: "berth-extender", lines: []string{
			"GPUAware and CostOptimized, over HTTP",
		}})
	c.box(box{x: right, y: 352, width: 270, height: 44, optional: true, title: "kube-scheduler, if it has to stay"})
	c.arrow([2]float64{right + 135, 352}, [2]float64{right + 135, 322})
	c.text(right+127, 341, "s", "end", "asks")

	c.box(box{x: 0, y: 120, width: 230, height: 112, own: true, title: "berth, on your cluster", lines: []string{
		"status, jobs, top, dashboard:", "what runs, waits and costs",
		"explain, advise: why, and what to do", "dump: a snapshot to try things on",
	}})
	c.arrow([2]float64{230, 176}, [2]float64{apiX, 176})
	c.text(310, 168, "s", "middle", "reads")
	c.box(box{x: 0, y: 352, width: 230, height: 112, own: true, title: "berth, without a cluster", lines: []string{
		"up, demo: a local control plane", "replay, compare: another",
		"configuration on a snapshot", "validate: files before a rollout",
	}})
	c.arrow([2]float64{115, 232}, [2]float64{115, 352})
	c.text(123, 296, "s", "start", "snapshot")

	c.box(box{x: 330, y: 352, width: 300, height: 112, title: "GPU node"})
	c.box(box{x: 342, y: 384, width: 118, height: 64, title: "kubelet", lines: []string{
		"device plugin,", "DRA driver, HAMi",
	}})
	c.box(box{x: 470, y: 384, width: 150, height: 64, own: true, optional: true,
		title: "berth-node-agent", lines: []string{
			"sees each GPU",
		}})
	c.arrow([2]float64{434, 300}, [2]float64{434, 384})
	c.text(428, 336, "s", "end", "runs pods")
	c.arrow([2]float64{550, 384}, [2]float64{550, 300})
	c.text(558, 336, "s", "start", "devices, links, use")

	c.box(box{x: 0, y: 482, width: 14, height: 14, own: true})
	c.text(20, 494, "s", "start", "part of Berth")
	c.box(box{x: 120, y: 482, width: 14, height: 14})
	c.text(140, 494, "s", "start", "part of the cluster")
	c.box(box{x: 270, y: 482, width: 14, height: 14, optional: true})
	c.text(290, 494, "s", "start", "optional")
	return c.document("The parts of Berth, and what they tell each other")
}
