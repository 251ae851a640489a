package price

// Placement is one pod on one node, as far as money is concerned.
type Placement struct {
	// Node is the node's price, divided.
	Node Split
	// Share is q, the part of the node's price that the pod's request makes up: Node.Share(request).
	Share MicroDollars
	// KeepsAlive says that without the pod the node could be given back, so that the pod is charged for all of it.
	KeepsAlive bool
	// StrandedMilliGPU is how much GPU, free before, nobody can use once the pod is there for want of CPU or memory.
	StrandedMilliGPU int64
	// Risk is the loss to interruptions that is expected in an hour.
	Risk MicroDollars
	// SpeedPermille is how fast the pod's kind of work runs here relative to the reference node; 1000 is as fast.
	SpeedPermille int64
}

// Policy weighs the parts of a placement's cost.
type Policy struct {
	// SharePermille is θ: how much of its share a pod is charged on a node that runs anyway. With 1000 pods pay for what
	// they take; with 0 room on a running node is free and only nodes kept alive cost money.
	SharePermille int64
}

// Cost returns D = [θ·q + O·(P − θ·q) + S + R] / speed: what the placement adds to the bill for an hour's worth of
// work.
func (p Policy) Cost(at Placement) MicroDollars {
	cost := at.Share.Scale(p.SharePermille, 1000)
	if at.KeepsAlive {
		cost = max(cost, at.Node.Price)
	}
	cost = cost.Plus(at.Node.GPUPrice(at.StrandedMilliGPU)).Plus(at.Risk)
	if at.SpeedPermille > 0 && at.SpeedPermille != 1000 {
		cost = cost.Scale(1000, at.SpeedPermille)
	}
	return cost
}

// Interruption is the risk that a kind of capacity carries.
type Interruption struct {
	// PerThousandHours is how often a node of that kind is taken away in a thousand hours.
	PerThousandHours int64
	// LostMinutes is how much work a pod loses each time: since its last checkpoint, and to start again.
	LostMinutes int64
}

// ExpectedLoss returns what interruptions of one pod's node cost in an hour, when each makes all members of the pod's
// gang, whose shares are like this one, lose their work.
func (i Interruption) ExpectedLoss(share MicroDollars, members int64) MicroDollars {
	return share.Scale(max(members, 1), 1).Scale(i.PerThousandHours*i.LostMinutes, 1000*60)
}

// Slack returns X of the score for the cheapest of the candidates' shares: a tenth of it, at least one micro-dollar.
func Slack(cheapestShare MicroDollars) MicroDollars {
	return max(cheapestShare/10, 1)
}

// Score maps a cost to 0–100: 100·(cheapest + slack)/(cost + slack), rounded to nearest. 100 is the cheapest placement
// and no other, 50 is about twice its cost. Slack keeps two costs that are both next to nothing from being far apart.
func Score(cost, cheapest, slack MicroDollars) int64 {
	if cost <= cheapest {
		return 100
	}
	// 200·(…)/(…) rounded down, plus one, halved: rounds to nearest in whole numbers.
	twice := cheapest.Plus(slack).Scale(200, int64(cost.Plus(slack)))
	return min((int64(twice)+1)/2, 99)
}
